/** Output as the engine sends it. @param stream 1: stdout, 2: stderr, 3: the engine's own */
export function engineFrame(text: string, stream = 1): Buffer {
  const payload = Buffer.from(text);
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(payload.length, 4);
  return Buffer.concat([header, payload]);
}
