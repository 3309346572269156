/** A chunk of output of a container or a program in it; a payload may arrive in several. */
type StreamPiece = {
  /** `engine`: what it says itself, such as that a file of the log is damaged. */
  stream: "stdout" | "stderr" | "engine";
  bytes: Buffer;
  /** Whether this is the last chunk of its payload. */
  isLast: boolean;
};

const headerBytes = 8;
/** The first byte of a header. */
const streams: Record<number, StreamPiece["stream"]> = { 2: "stderr", 3: "engine" };
const keptErrorBytes = 8192;

/**
 * Parses the frames in which the engine sends output: an 8-byte header (stream, length), then the payload (Docker
 * API: Attach to a container, Stream format). Payloads are passed on as they arrive and never buffered.
 */
export class StreamFrames {
  private readonly header = Buffer.alloc(headerBytes);
  private headerLength = 0;
  private payloadLength = 0;

  *push(chunk: Buffer): Generator<StreamPiece> {
    for (let at = 0; at < chunk.length || this.isEmptyPayload();) {
      if (this.headerLength < headerBytes) {
        const taken = chunk.copy(this.header, this.headerLength, at, at + headerBytes - this.headerLength);
        at += taken;
        this.headerLength += taken;
        if (this.headerLength === headerBytes) this.payloadLength = this.header.readUInt32BE(4);
        continue;
      }
      const bytes = chunk.subarray(at, at + this.payloadLength);
      at += bytes.length;
      this.payloadLength -= bytes.length;
      const isLast = this.payloadLength === 0;
      if (isLast) this.headerLength = 0;
      yield { stream: streams[this.header[0] ?? 0] ?? "stdout", bytes, isLast };
    }
  }

  private isEmptyPayload(): boolean {
    return this.headerLength === headerBytes && this.payloadLength === 0;
  }
}

/** A program's stdout as it arrives; the last bytes of its stderr, and of what the engine says, are passed to the callback. */
export async function* stdoutOf(
  stream: AsyncIterable<Buffer>,
  onStderr: (last: string) => void,
): AsyncGenerator<Buffer> {
  const frames = new StreamFrames();
  let errors = "";
  for await (const chunk of stream)
    for (const { stream: from, bytes } of frames.push(chunk))
      if (from === "stdout") yield bytes;
      else onStderr((errors = (errors + bytes.toString()).slice(-keptErrorBytes)));
}

/** The text of one stream of the program's, or of both as they were written. */
export function textOf(raw: Buffer, only?: "stdout" | "stderr"): string {
  const pieces = [...new StreamFrames().push(raw)];
  return Buffer.concat(
    pieces
      .filter(({ stream }) => (only === undefined ? stream !== "engine" : stream === only))
      .map(({ bytes }) => bytes),
  ).toString();
}
