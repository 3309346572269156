/** Values of variables, each to be passed on byte for byte. */
export const exactValues: Record<string, string> = {
  EMPTY: "",
  NEWLINE: "\n",
  NEWLINES: "\n\n\n",
  ENDS: "value\n\n",
  BEGINS: "\n \tvalue",
  LINES: "a\nb\r\nc\n",
  PEM: `-----BEGIN KEY-----\n${"A".repeat(64)}\n-----END KEY-----\n`,
  QUOTES: `'"\\$HOME\`id\`%.x.`,
  LETTERS: "ä€😀.\n",
};
