/** The little of DNS (RFC 1035, RFC 2782) that Caddy's resolver asks of the responder. */

type Question = { name: string; type: number; end: number };
export const recordTypes = { A: 1, AAAA: 28, SRV: 33 } as const;

const ttlSeconds = 0;

/** The one question of a query, or null for anything that is not a plain query. */
export function readQuestion(packet: Buffer): Question | null {
  if (packet.length < 17 || (packet.readUInt16BE(2) & 0xf800) !== 0 || packet.readUInt16BE(4) !== 1)
    return null;
  const labels: string[] = [];
  let at = 12;
  for (;;) {
    const length = packet[at];
    if (length === undefined || length > 63 || at + 1 + length > packet.length) return null;
    at++;
    if (length === 0) break;
    labels.push(packet.toString("latin1", at, at + length));
    at += length;
    if (at > 12 + 255) return null;
  }
  if (at + 4 > packet.length) return null;
  return { name: labels.join(".").toLowerCase(), type: packet.readUInt16BE(at), end: at + 4 };
}

const encodeName = (name: string): Buffer =>
  Buffer.concat([
    ...name
      .split(".")
      .map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label, "latin1")])),
    Buffer.from([0]),
  ]);

function record(type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(ttlSeconds, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

export const addressRecord = (address: string): Buffer =>
  record(recordTypes.A, Buffer.from(address.split(".").map(Number)));

export function serviceRecord(target: string, port: number): Buffer {
  const head = Buffer.alloc(6);
  head.writeUInt16BE(port, 4);
  return record(recordTypes.SRV, Buffer.concat([head, encodeName(target)]));
}

/** The answer to a query: no record and `found` false is NXDOMAIN, no record and `found` true is "no such data". */
export function reply(query: Buffer, question: Question, records: Buffer[], found = true): Buffer {
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2);
  // Response, authoritative; recursion desired is copied.
  head.writeUInt16BE(0x8400 | (query.readUInt16BE(2) & 0x0100) | (found ? 0 : 3), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(records.length, 6);
  return Buffer.concat([head, query.subarray(12, question.end), ...records]);
}
