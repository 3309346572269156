import * as z from "zod";
import { text, wholeNumber } from "./common.ts";

/**
 * Tunnels to databases and terminals in sites: WebSockets of clients (`/databases/{id}/tunnel`, `/sites/{id}/terminal`).
 * Binary messages are the bytes themselves, in both directions; texts are the JSON messages below. Each end may send
 * one window ahead of what the other has consumed, so that a slow reader slows the writer down, however long the way.
 */

/** The maximum size of one binary message. */
export const maxPayloadBytes = 64 * 1024;
/** How much may be under way in each direction, with `costOf` each message. */
export const windowBytes = 512 * 1024;
/** Counted in addition to a message's bytes, so that a flood of tiny messages is bounded as well. */
const messageBytes = 64;
export const costOf = (payload: { byteLength: number }): number => payload.byteLength + messageBytes;

/** Close codes of these WebSockets (RFC 6455 §7.4.2); the first three digits after 4 are those of HTTP. */
export const streamCloseCodes = {
  ended: 1000,
  /** Not a message of this protocol, or more than the window allows. */
  protocolError: 4400,
  /** The key or session has ended. */
  accessEnded: 4401,
  /** Idle or open for too long, or `pong` is missing. */
  timedOut: 4408,
  /** The database or site ended it, or is gone; the reason says more. */
  gone: 4410,
  /** The link to the host has ended. */
  hostOffline: 4503,
} as const;

const Mark = z.string().regex(/^[0-9a-f]{16}$/);

export const FromStreamClient = z.discriminatedUnion("type", [
  /** Everything before this mark is consumed: written to where it goes. */
  z.strictObject({ type: z.literal("consumed"), mark: Mark }),
  z.strictObject({ type: z.literal("pong") }),
  /** Terminals only. */
  z.strictObject({
    type: z.literal("resize"),
    columns: z.number().int().min(1).max(1000),
    rows: z.number().int().min(1).max(1000),
  }),
]);
export type FromStreamClient = z.infer<typeof FromStreamClient>;

export const ToStreamClient = z.discriminatedUnion("type", [
  /** To be answered with `consumed`. Random, so that nobody can consume what was not received. */
  z.object({ type: z.literal("mark"), mark: Mark }),
  /** The client may send this much more. */
  z.object({ type: z.literal("credit"), bytes: z.number().int().positive().max(windowBytes) }),
  /** To be answered with `pong` at once, even by a slow reader. */
  z.object({ type: z.literal("ping") }),
  /** Of a terminal's program, before the end; null: it did not end by itself. */
  z.object({ type: z.literal("exit"), exitCode: z.number().int().nullable() }),
]);
export type ToStreamClient = z.infer<typeof ToStreamClient>;

export const TerminalQuery = z.strictObject({
  columns: wholeNumber(1, 1000).default(80),
  rows: wholeNumber(1, 1000).default(24),
  command: text.min(1).max(4096).optional().describe("One line for sh; default: a shell."),
  terminal: z
    .string()
    .regex(/^[\w.+-]{1,40}$/, "a terminal's name, such as xterm-256color")
    .default("xterm-256color"),
});
export type TerminalQuery = z.infer<typeof TerminalQuery>;

/** What one end may still send: one window ahead of what the other has consumed. */
export class Allowance {
  private left = windowBytes;
  private isOver = false;
  private wake: (() => void) | undefined;

  /** Resolves once it covers the cost; false: the stream is over. One caller at a time. */
  async take(cost: number): Promise<boolean> {
    while (this.left < cost && !this.isOver) await new Promise<void>((resolve) => (this.wake = resolve));
    this.left -= cost;
    return !this.isOver;
  }

  give(cost: number): void {
    this.left = Math.min(windowBytes, this.left + cost);
    this.wake?.();
  }

  end(): void {
    this.isOver = true;
    this.wake?.();
  }
}

/** What the other end has sent and is not consumed yet. */
export class Intake {
  private underway = 0;
  private consumed = 0;

  /** false: it sends more than its window. */
  admits(cost: number): boolean {
    this.underway += cost;
    return this.underway <= windowBytes;
  }

  /** @returns how much of it really was under way: the other end may send that much more */
  release(cost: number): number {
    const released = Math.min(cost, this.underway);
    this.underway -= released;
    return released;
  }

  /** The same in a few large steps, to save messages: 0 until a quarter of the window is consumed. */
  consume(cost: number): number {
    this.consumed += cost;
    if (this.consumed < windowBytes / 4) return 0;
    const credit = this.release(this.consumed);
    this.consumed = 0;
    return credit;
  }
}

/** The pieces of a chunk that fit into one message each, without copying. */
export function* piecesOf(chunk: Uint8Array): Generator<Uint8Array> {
  for (let from = 0; from < chunk.byteLength; from += maxPayloadBytes)
    yield chunk.subarray(from, from + maxPayloadBytes);
}
