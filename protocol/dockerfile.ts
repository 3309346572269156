/** `line` counts from 1. */
type Instruction = { keyword: string; text: string; line: number };

/** Of instructions that take here-documents, where they begin: `<<EOF`, `<<-"EOF"`. */
const hereDocuments = /(?<=\s)\d*<<(-?)(["']?)([^\s<"']+)\2(?=\s|$)/g;
const takesHereDocuments = new Set(["RUN", "COPY", "ADD"]);

/**
 * A Dockerfile as its logical instructions (https://docs.docker.com/reference/dockerfile/#format): comments dropped,
 * continued lines and here-documents joined as written, so that `text` still builds the same. The escape directive is honoured.
 */
export function parseInstructions(dockerfile: string): { directives: string[]; instructions: Instruction[] } {
  const lines = dockerfile.replace(/^\uFEFF/, "").split(/\r?\n/);
  const directives: string[] = [];
  let escape = "\\";
  for (const line of lines) {
    const directive = /^#\s*(\w+)\s*=\s*(\S.*)$/.exec(line);
    if (!directive) break;
    if (directive[1]?.toLowerCase() === "escape" && directive[2]?.trimEnd() === "`") escape = "`";
    directives.push(line);
  }
  const instructions: Instruction[] = [];
  for (let at = directives.length; at < lines.length; at++) {
    const line = at + 1;
    const first = lines[at] ?? "";
    const keyword = /^\s*([^\s#]\S*)/.exec(first)?.[1]?.toUpperCase();
    if (!keyword) continue;
    const own = [first];
    while (isContinued(own.at(-1) ?? "", escape) && at + 1 < lines.length) {
      // Comments and empty lines inside a continued instruction are skipped by the builder.
      do at++;
      while (at + 1 < lines.length && /^\s*(#.*)?$/.test(lines[at] ?? ""));
      own.push(lines[at] ?? "");
    }
    if (takesHereDocuments.has(keyword))
      for (const [, dash, , end] of own.join("\n").matchAll(hereDocuments))
        while (at + 1 < lines.length) {
          const line = lines[++at] ?? "";
          own.push(line);
          if ((dash === "" ? line : line.replace(/^\t+/, "")) === end) break;
        }
    instructions.push({ keyword, text: own.join("\n"), line });
  }
  return { directives, instructions };
}

/** An escaped escape at the end of a line is itself. */
function isContinued(line: string, escape: string): boolean {
  const text = line.trimEnd();
  return text.endsWith(escape) && !text.endsWith(escape + escape);
}

/** The words after the keyword. */
export const wordsOf = (text: string): string[] =>
  text
    .split(/(?:[\\`]\r?\n|\s)+/)
    .filter(Boolean)
    .slice(1);

const known = new Set([
  "ADD",
  "ARG",
  "CMD",
  "COPY",
  "ENTRYPOINT",
  "ENV",
  "EXPOSE",
  "FROM",
  "HEALTHCHECK",
  "LABEL",
  "MAINTAINER",
  "ONBUILD",
  "RUN",
  "SHELL",
  "STOPSIGNAL",
  "USER",
  "VOLUME",
  "WORKDIR",
]);

/**
 * Why no build takes this text, or why nothing that it builds can run, with the line; null where that is not certain, such as
 * after the first here-document.
 *
 * @param hasStartCommand whether the site's own command takes the place of the image's
 */
export function problemOfDockerfile(dockerfile: string, hasStartCommand: boolean): string | null {
  let stage: { line: number; image: string; keywords: Set<string> } | undefined;
  for (const { keyword, text, line } of parseInstructions(dockerfile).instructions) {
    if (!known.has(keyword))
      return `line ${line}: there is no instruction ${keyword.length > 30 ? `${keyword.slice(0, 30)}…` : keyword}`;
    if (keyword === "FROM") {
      const [image] = wordsOf(text).filter((word) => !word.startsWith("--"));
      if (image === undefined) return `line ${line}: FROM names no image`;
      stage = { line, image, keywords: new Set() };
    } else if (!stage && keyword !== "ARG")
      return `line ${line}: ${keyword} stands before FROM: begin with the image to build on, such as FROM node:24`;
    if (text.includes("<<")) return null;
    stage?.keywords.add(keyword);
  }
  if (!stage) return "there is no FROM: begin with the image to build on, such as FROM node:24";
  const has = (...some: string[]) => some.some((keyword) => stage.keywords.has(keyword));
  if (stage.image !== "scratch") return null;
  if (!has("ADD", "COPY", "RUN"))
    return `line ${stage.line}: FROM scratch begins without any file, and none is copied, so there is nothing to run`;
  if (!hasStartCommand && !has("CMD", "ENTRYPOINT"))
    return `line ${stage.line}: FROM scratch begins without a command: add CMD, ENTRYPOINT or startCommand`;
  return null;
}
