/** A line of a log, ten milliseconds after the one before, every tenth on stderr. */
export const lineOf = (seq: number, text: string) => ({
  seq,
  at: new Date(1_700_000_000_000 + seq * 10).toISOString(),
  stream: seq % 10 === 0 ? "stderr" : "stdout",
  text,
});

/** The same as an event stream has it. */
export const event = (seq: number, text: string) =>
  `id: ${seq}\nevent: line\ndata: ${JSON.stringify(lineOf(seq, text))}\n\n`;
