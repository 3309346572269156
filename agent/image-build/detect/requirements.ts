import { posix } from "node:path";
import { present, textOf, type Sources } from "./sources.ts";

const mostFiles = 20;
/** No line that is meant is longer; what is longer is only slow to read. */
const mostOfLine = 1000;

const included = /^(?:-[rc]|--(?:requirement|constraint)\b)[ \t=]*(\S+)/;
/** Names a folder of the repository, or a package that lies in it. */
const otherFile =
  /^(?:-[ef]\b|--(?:editable|find-links)\b|\.|[\w-]+\/|.*@\s*file:|\S+\.(?:whl|tar\.gz|zip)\b)/;

/** The likeliest to be there for an app in service first. */
export const requirementsFiles = [
  "requirements.txt",
  "requirements/production.txt",
  "requirements/prod.txt",
  "requirements/base.txt",
];

const isNamedElsewhere = (sources: Sources): boolean =>
  sources.files.has("Pipfile") || /^\[(?:project|tool\.poetry)\b/m.test(textOf(sources, "pyproject.toml"));

/** requirements.txt, or the file that stands for it where no other manifest names packages. */
export const requirementsFile = (sources: Sources): string | undefined =>
  present(sources, isNamedElsewhere(sources) ? ["requirements.txt"] : requirementsFiles)[0];

/**
 * That file with those that it includes, each named relative to the one that includes it, as pip reads them.
 * @property files all that pip reads of the repository; null where that is more than these, or not known
 */
export function requirementsOf(sources: Sources): { text: string; files: string[] | null } {
  const first = requirementsFile(sources);
  const files = new Set(first === undefined ? [] : [first]);
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

/** The text of a file in which an app names its packages. Those of setup.py are installed where no other file names any. */
export function manifestText(sources: Sources, file: string): string {
  if (file === "requirements.txt") return requirementsOf(sources).text;
  const others = isNamedElsewhere(sources) || requirementsFile(sources) !== undefined;
  return others && file.startsWith("setup.") ? "" : textOf(sources, file);
}

export const pythonManifests = ["requirements.txt", "pyproject.toml", "Pipfile", "setup.py", "setup.cfg"];
