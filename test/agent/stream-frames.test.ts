import fc from "fast-check";
import { expect, it } from "vitest";
import { StreamFrames, stdoutOf, textOf } from "../../agent/docker/stream-frames.ts";

const numbers = { stdout: 1, stderr: 2, engine: 3 };
type Stream = keyof typeof numbers;
const payloads = fc.array(
  fc.record({ stream: fc.constantFrom<Stream>("stdout", "stderr", "engine"), text: fc.string() }),
);
const cutSizes = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1 });

function framed(messages: readonly { stream: Stream; text: string }[]): Buffer {
  return Buffer.concat(
    messages.map(({ stream, text }) => {
      const payload = Buffer.from(text);
      const header = Buffer.alloc(8);
      header[0] = numbers[stream];
      header.writeUInt32BE(payload.length, 4);
      return Buffer.concat([header, payload]);
    }),
  );
}

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const size = sizes[n % sizes.length] ?? 1;
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return chunks;
}

it("the same payloads come out however the connection cuts the bytes", () =>
  fc.assert(
    fc.property(payloads, cutSizes, (messages, sizes) => {
      const frames = new StreamFrames();
      const found: { stream: string; text: string }[] = [];
      let pieces: Buffer[] = [];
      for (const chunk of cut(framed(messages), sizes))
        for (const { stream, bytes, isLast } of frames.push(chunk)) {
          pieces.push(bytes);
          if (!isLast) continue;
          found.push({ stream, text: Buffer.concat(pieces).toString() });
          pieces = [];
        }
      expect(found).toEqual(
        messages.map(({ stream, text }) => ({ stream, text: Buffer.from(text).toString() })),
      );
    }),
  ));

it("a program's stdout is kept apart from its stderr, and both from what the engine says", async () => {
  const raw = framed([
    { stream: "stdout", text: "one " },
    { stream: "stderr", text: "failed" },
    { stream: "engine", text: " broke" },
    { stream: "stdout", text: "two" },
  ]);
  expect([textOf(raw), textOf(raw, "stdout"), textOf(raw, "stderr")]).toEqual([
    "one failedtwo",
    "one two",
    "failed",
  ]);
  let errors = "";
  const chunks = (async function* () {
    yield* cut(raw, [3]);
  })();
  const printed: Buffer[] = [];
  for await (const bytes of stdoutOf(chunks, (last) => (errors = last))) printed.push(bytes);
  expect([Buffer.concat(printed).toString(), errors]).toEqual(["one two", "failed broke"]);
});
