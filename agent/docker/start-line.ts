const assignments = String.raw`^\s*(?:\w+=\S*\s+)*`;
const ofShell = new RegExp(
  `${assignments}(?:(?:cd|export|set|source|\\.|if|then|else|for|do|while|until|case|exec|exit|eval|kill|trap|type|ulimit|umask|unset|wait|command|read|shift|alias|:|\\{|!)\\s|(?:fi|done|esac|\\})\\s*$)`,
);
const notSimple = /[;&|\n()`]/;
/** A sequence of commands without quoting. */
const sequence = /^((?:[^;&|\n()`"'\\#]+(?:&&|;))+)([^;&|\n()`"'\\#]+)$/;

/**
 * A start command for `sh -c` in which the app replaces the shell, so that it receives the signals. Only a simple
 * command or the last one of a sequence can: `exec` would end other lists after their first part, and shell builtins
 * are not programs.
 */
export function startLine(command: string): string {
  const [, before = "", last = command] = sequence.exec(command) ?? [];
  if (notSimple.test(last) || ofShell.test(last) || last.trim() === "") return command;
  return `${before}${before === "" ? "" : " "}exec ${/^\s*\w+=/.test(last) ? "env " : ""}${last.trim()}`;
}
