import fc from "fast-check";
import { expect, it } from "vitest";
import { decodeFrame, encodeFrame } from "../../protocol/agent/stream-frames.ts";
import {
  Allowance,
  costOf,
  Intake,
  maxPayloadBytes,
  piecesOf,
  windowBytes,
} from "../../protocol/api/streams.ts";

const streamId = fc.integer({ min: 0, max: 0xffff_ffff });

it("a frame arrives as it was sent, wherever in a larger buffer it lies", () =>
  fc.assert(
    fc.property(
      streamId,
      fc.uint8Array({ minLength: 1, maxLength: 300 }),
      fc.nat(9),
      (id, payload, offset) => {
        const frame = encodeFrame(id, payload);
        const buffer = new Uint8Array(offset + frame.byteLength);
        buffer.set(frame, offset);
        expect(decodeFrame(buffer.subarray(offset))).toEqual({ streamId: id, payload });
      },
    ),
  ));

it("any bytes are a frame of that payload, or none: too short, or too long", () =>
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      const frame = decodeFrame(bytes);
      expect(frame && encodeFrame(frame.streamId, frame.payload)).toEqual(
        bytes.byteLength > 4 ? bytes : null,
      );
    }),
  ));

it("a payload of more than a message may have is no frame", () => {
  expect(decodeFrame(encodeFrame(1, new Uint8Array(maxPayloadBytes)))).not.toBeNull();
  expect(decodeFrame(encodeFrame(1, new Uint8Array(maxPayloadBytes + 1)))).toBeNull();
});

it("the pieces of a chunk are the chunk, and each fits into a message", () =>
  fc.assert(
    fc.property(fc.nat(4 * maxPayloadBytes), (length) => {
      const pieces = [...piecesOf(new Uint8Array(length))];
      expect(pieces.reduce((sum, piece) => sum + piece.byteLength, 0)).toBe(length);
      expect(pieces.every(({ byteLength }) => byteLength > 0 && byteLength <= maxPayloadBytes)).toBe(true);
    }),
    { numRuns: 30 },
  ));

it("whoever sends what the allowance covers is never refused, never stuck, and never more than a window ahead", () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: maxPayloadBytes }), { minLength: 20, maxLength: 200 }),
      fc.infiniteStream(fc.boolean()),
      async (lengths, consumesNow) => {
        const [allowance, intake] = [new Allowance(), new Intake()];
        const underway: number[] = [];
        let sent = 0;
        const sending = (async () => {
          for (const byteLength of lengths) {
            const cost = costOf({ byteLength });
            expect(await allowance.take(cost)).toBe(true);
            expect(intake.admits(cost)).toBe(true);
            underway.push(cost);
            sent++;
          }
        })();
        for (let turns = 0; sent < lengths.length; turns++) {
          expect(turns).toBeLessThan(10_000);
          await Promise.resolve();
          expect(underway.reduce((sum, cost) => sum + cost, 0)).toBeLessThanOrEqual(windowBytes);
          const [first] = consumesNow.take(1);
          const cost = first ? underway.shift() : undefined;
          const credit = cost === undefined ? 0 : intake.consume(cost);
          if (credit > 0) allowance.give(credit);
        }
        await sending;
      },
    ),
    { numRuns: 50 },
  ));

it("whoever sends more than the window is refused, with empty messages as well", () => {
  for (const byteLength of [0, 1, maxPayloadBytes]) {
    const intake = new Intake();
    let messages = 0;
    while (intake.admits(costOf({ byteLength }))) messages++;
    expect(messages).toBe(Math.floor(windowBytes / costOf({ byteLength })));
  }
});

it("credit for what was never sent gives nothing", () => {
  const intake = new Intake();
  intake.admits(100);
  expect(intake.release(1000)).toBe(100);
  expect(intake.release(1000)).toBe(0);
});

it("a stream that ends lets a waiting sender go", async () => {
  const allowance = new Allowance();
  await allowance.take(windowBytes);
  const waiting = allowance.take(1);
  allowance.end();
  expect(await waiting).toBe(false);
});

it("what is consumed gives credit in steps of a quarter of the window", () => {
  const intake = new Intake();
  intake.admits(windowBytes);
  expect(intake.consume(windowBytes / 4 - 1)).toBe(0);
  expect(intake.consume(1)).toBe(windowBytes / 4);
  expect(intake.consume(windowBytes / 4)).toBe(windowBytes / 4);
  expect(intake.consume(1)).toBe(0);
});

it("a stream may end, or be given credit, while nobody waits", () => {
  const allowance = new Allowance();
  allowance.give(1);
  expect(() => allowance.end()).not.toThrow();
});
