const assignments = String.raw`^\s*(?:\w+=\S*\s+)*`;
const ofShell = new RegExp(
  `${assignments}(?:(?:cd|export|set|source|\\.|if|then|else|for|do|while|until|case|exec|exit|eval|kill|trap|type|ulimit|umask|unset|wait|command|read|shift|alias|:|\\{|!)\\s|(?:fi|done|esac|\\})\\s*$)`,
);
const notSimple = /[;&|\n()`]/;
/** Commands one after another, in which nothing is quoted. */
const sequence = /^((?:[^;&|\n()`"'\\#]+(?:&&|;))+)([^;&|\n()`"'\\#]+)$/;

/**
 * A start command for `sh -c`: the app takes the shell's place, so that it gets the signals. Only a simple command can, or the last
 * one of several; of others, the first part would run and nothing after it, and what only the shell knows is no program.
 */
export function startLine(command: string): string {
  const [, before = "", last = command] = sequence.exec(command) ?? [];
  if (notSimple.test(last) || ofShell.test(last) || last.trim() === "") return command;
  return `${before}${before === "" ? "" : " "}exec ${/^\s*\w+=/.test(last) ? "env " : ""}${last.trim()}`;
}
