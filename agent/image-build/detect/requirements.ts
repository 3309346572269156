import { posix } from "node:path";
import { textOf, type Sources } from "./sources.ts";

const mostFiles = 20;
/** No line that is meant is longer; what is longer is only slow to read. */
const mostOfLine = 1000;

const included = /^(?:-[rc]|--(?:requirement|constraint)\b)[ \t=]*(\S+)/;
/** Names a folder of the repository, or a package that lies in it. */
const otherFile =
  /^(?:-[ef]\b|--(?:editable|find-links)\b|\.|[\w-]+\/|.*@\s*file:|\S+\.(?:whl|tar\.gz|zip)\b)/;

/**
 * requirements.txt with the files that it includes, each named relative to the one that includes it, as pip reads them.
 * @property files all that pip reads of the repository; null where that is more than these, or not known
 */
export function requirementsOf(sources: Sources): { text: string; files: string[] | null } {
  const files = new Set(["requirements.txt"]);
  const texts: string[] = [];
  let isAll = true;
  for (const file of files) {
    isAll &&= sources.texts.has(file);
    const text = textOf(sources, file);
    texts.push(text);
    for (const line of text.split("\n")) {
      const start = line.trimStart().slice(0, mostOfLine);
      const name = included.exec(start)?.[1];
      if (name !== undefined && files.size < mostFiles) files.add(posix.join(posix.dirname(file), name));
      else isAll &&= name === undefined && !otherFile.test(start);
    }
  }
  return { text: texts.join("\n"), files: isAll ? [...files] : null };
}

/** The text of a file in which an app names its packages. */
export const manifestText = (sources: Sources, file: string): string =>
  file === "requirements.txt" ? requirementsOf(sources).text : textOf(sources, file);

export const pythonManifests = ["requirements.txt", "pyproject.toml", "Pipfile"];
