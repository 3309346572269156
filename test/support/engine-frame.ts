/** Output as the engine sends it: of stdout, of stderr, or the engine's own words. */
export function frame(stream: 1 | 2 | 3, text: string): Buffer {
  const payload = Buffer.from(text);
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(payload.length, 4);
  return Buffer.concat([header, payload]);
}
