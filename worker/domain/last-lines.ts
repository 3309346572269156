/** An error without the app's last lines, which hosts join to it with " | ", and these; null: it has none. */
export function splitLastLines(error: string): { said: string; lines: string | null } {
  const before = /\s*(?:Its|The app's|The) last lines?(?: of [^:]*)?: /.exec(error);
  return before
    ? { said: error.slice(0, before.index), lines: error.slice(before.index + before[0].length) }
    : { said: error, lines: null };
}
