type Instruction = { keyword: string; text: string };

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
    const directive = /^#\s*(\w+)\s*=\s*(\S+)\s*$/.exec(line);
    if (!directive) break;
    if (directive[1]?.toLowerCase() === "escape" && directive[2] === "`") escape = "`";
    directives.push(line);
  }
  const instructions: Instruction[] = [];
  for (let at = directives.length; at < lines.length; at++) {
    const first = lines[at] ?? "";
    const keyword = /^\s*([A-Za-z]+)(\s|$)/.exec(first)?.[1]?.toUpperCase();
    if (!keyword) continue;
    const own = [first];
    while ((own.at(-1) ?? "").trimEnd().endsWith(escape) && at + 1 < lines.length) {
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
    instructions.push({ keyword, text: own.join("\n") });
  }
  return { directives, instructions };
}
