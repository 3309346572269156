/** Stacks, and where on a machine that is gone a log lies. */
const tellsNothing =
  /^(?:npm error ?)?(?:(?:gyp ERR! stack )?\s*at .+(?::\d+:\d+\)?|\(<anonymous>\))(?: \{)?|\s+at [\w.$<>/]+\([^()]*\)|\s+from \S+:\d+:in .*|\s*\d+: 0x[\da-f]+ .*|-{3,} Native stack trace -{3,}|A complete log of this run can be found in: .*|Node\.js v[\d.]+|\s*\^+|)$/;
/** pnpm's count of packages, of which it prints a line a second. */
const progress = /^(?:\S+ +\| )?Progress: resolved \d+, reused \d+, downloaded \d+, added \d+(?:, done)?$/;
/** How npm is used. */
const usage = /^npm error (?:Clean install a project|Usage:)$/;

/** How Node shows what a program wrote that it ran, byte by byte: the program's own lines stand above. */
const bytes =
  /^\s*(?:(?:\d{1,3}, *)*\d{1,3},?|(?:(?:output|stdout|stderr): )?(?:Buffer\(\d+\) \[Uint8Array\] )?\[\]?,?|null,|signal: null,|pid: \d+,|\],?)$/;

/** The lines that a program wrote last, without those that tell nothing. */
export function telling(lines: readonly string[]): string[] {
  const from = lines.findIndex((line) => usage.test(line));
  return (from === -1 ? lines : lines.slice(0, from)).filter(
    (line) => ![tellsNothing, progress, bytes].some((sign) => sign.test(line.trimEnd())),
  );
}
