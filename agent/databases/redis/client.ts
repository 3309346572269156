import type { Socket } from "node:net";
import { textOrBinary } from "../inspect/rows.ts";

/** A server's reply; lists may be nested. */
export type Reply = null | number | string | { base64: string } | RedisError | Reply[];
export class RedisError extends Error {
  override name = "RedisError";
}

const maxDepth = 16;
const lineEnd = Buffer.from("\r\n");

/** The part of RESP 2 that a client with sequential commands needs. */
export class RedisClient {
  private readonly socket: Socket;
  private readonly taken: () => void;
  private chunks: Buffer[] = [];
  private size = 0;
  /** No reply can be complete before this many bytes have arrived. */
  private needed = 0;
  private readonly waiting: { resolve: (reply: Reply) => void; reject: (error: Error) => void }[] = [];
  private failure: Error | undefined;
  /** Incomplete lists, the innermost last. */
  private readonly open: { list: Reply[]; items: number }[] = [];

  constructor(socket: Socket, taken: () => void) {
    this.socket = socket;
    this.taken = taken;
    socket.on("data", (chunk: Buffer) => this.receive(chunk));
    socket.on("error", (error) => this.end(error));
    socket.on("close", () => this.end(new Error("The connection was closed")));
  }

  /** Sent at once; replies arrive in the order of the commands. */
  ask(...words: (string | Buffer)[]): Promise<Reply> {
    if (this.failure) return Promise.reject(this.failure);
    const reply = new Promise<Reply>((resolve, reject) => this.waiting.push({ resolve, reject }));
    const parts = words.flatMap((word) => [
      Buffer.from(`$${Buffer.byteLength(word)}\r\n`),
      Buffer.from(word),
      lineEnd,
    ]);
    this.socket.write(Buffer.concat([Buffer.from(`*${words.length}\r\n`), ...parts]));
    return reply;
  }

  private end(error: Error): void {
    this.failure ??= error;
    for (const { reject } of this.waiting.splice(0)) reject(this.failure);
  }

  private receive(chunk: Buffer): void {
    this.chunks.push(chunk);
    this.size += chunk.length;
    if (this.size < this.needed) return;
    const bytes = Buffer.concat(this.chunks);
    let at = 0;
    try {
      for (;;) {
        const token = tokenAt(bytes, at);
        if ("needed" in token) {
          this.needed = token.needed - at;
          break;
        }
        at = token.next;
        this.place(token);
      }
    } catch (error) {
      this.socket.destroy();
      return this.end(error as Error);
    }
    const left = bytes.subarray(at);
    this.chunks = left.length > 0 ? [left] : [];
    this.size = left.length;
  }

  /** Adds a reply to the innermost open list; a complete reply resolves the oldest command. */
  private place(token: Token): void {
    let reply = token.reply;
    if (token.items > 0) {
      if (this.open.length === maxDepth) throw new Error("The reply is nested too deeply");
      this.open.push({ list: [], items: token.items });
      return;
    }
    for (let list = this.open.at(-1); list; list = this.open.at(-1)) {
      list.list.push(reply);
      if (list.list.length < list.items) return;
      reply = list.list;
      this.open.pop();
    }
    this.taken();
    this.waiting.shift()?.resolve(reply);
  }
}

/** `items`: the length of a list that begins here. */
type Token = { reply: Reply; items: number; next: number };

function tokenAt(bytes: Buffer, at: number): Token | { needed: number } {
  const end = bytes.indexOf(lineEnd, at);
  if (end < 0) return { needed: bytes.length + 1 };
  const line = bytes.toString("utf8", at + 1, end);
  const next = end + 2;
  const length = Number(line);
  switch (String.fromCharCode(bytes[at] ?? 0)) {
    case "+":
      return { reply: line, items: 0, next };
    case "-":
      return { reply: new RedisError(line), items: 0, next };
    case ":":
      return { reply: Number.isSafeInteger(length) ? length : line, items: 0, next };
    case "$":
      if (length < 0) return { reply: null, items: 0, next };
      if (bytes.length < next + length + 2) return { needed: next + length + 2 };
      return {
        reply: textOrBinary(bytes.subarray(next, next + length)),
        items: 0,
        next: next + length + 2,
      };
    case "*":
      return { reply: length < 0 ? null : [], items: Math.max(0, length), next };
    default:
      throw new Error("The server does not speak Redis's protocol");
  }
}
