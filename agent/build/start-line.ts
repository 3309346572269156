const notSimple =
  /[;&|\n()`]|^\s*(?:\w+=|(?:cd|export|set|source|\.|if|for|while|until|case|exec|exit|eval|kill|trap|type|ulimit|umask|unset|wait|command|read|shift|alias|:|\{|!)\s)/;

/**
 * A start command for `sh -c`: the app takes the shell's place, so that it gets the signals. Only a simple command can;
 * of others, the first part would run and nothing after it, and what only the shell knows is no program.
 */
export const startLine = (command: string): string => (notSimple.test(command) ? command : `exec ${command}`);
