import { appendFileSync, existsSync, readdirSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { SiteLogLine } from "../../protocol/agent/running.ts";
import { followLogFile, type LogPiece } from "../../agent/docker/log-file.ts";
import { LineBatches } from "../../agent/running/line-batches.ts";
import { neverWaiting } from "../../agent/running/never-waiting.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = temporaryFolder();
  file = join(folder, "c-json.log");
  writeFileSync(file, "");
});

/** Of a busy machine. */
const patience = { timeout: 15_000 };
const time = (n: number) => new Date(1_800_000_000_000 + n).toISOString().replace("Z", "000001Z");
const entry = (n: number, log = `line ${n}\n`, stream = "stdout") =>
  `${JSON.stringify({ log, stream, time: time(n) })}\n`;
/** As the engine does: three files. */
function rotate() {
  if (existsSync(`${file}.1`)) renameSync(`${file}.1`, `${file}.2`);
  renameSync(file, `${file}.1`);
  writeFileSync(file, "");
}
let written = 0;
beforeEach(() => (written = 0));
function write(count: number) {
  for (let i = 0; i < count; i++) appendFileSync(file, entry(++written));
}

/** Lines by number, and `-n` for n lines left out. */
const numbers = (pieces: LogPiece[]) =>
  pieces.flatMap((piece) =>
    Array.isArray(piece) ? piece.map(({ text }) => Number(text.slice(5))) : [-(piece.leftOut ?? Infinity)],
  );
const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, i) => first + i);

function follow(after = "", { isEnded = () => Promise.resolve(true), flushed = new Set<string>() } = {}) {
  return followLogFile(file, { after, flushed, isEnded }, new AbortController().signal);
}
const all = async (pieces: AsyncIterable<LogPiece>) => {
  const got: LogPiece[] = [];
  for await (const piece of pieces) got.push(piece);
  return got;
};

describe("a log that is read from the engine's files", () => {
  it("goes on after what is damaged in it", async () => {
    const damaged = [
      "null",
      "{}",
      "7",
      "\0\0\0",
      JSON.stringify({ log: "x\n", stream: "stdout", time: "Error" }),
    ];
    write(1);
    appendFileSync(file, `${damaged.join("\n")}\n`);
    write(1);
    expect(numbers(await all(follow()))).toEqual([1, 2]);
  });

  it("is complete over rotations, also of before it was followed, each line once", async () => {
    write(5);
    rotate();
    write(5);
    rotate();
    write(5);
    let isOver = false;
    const pieces = follow("", { isEnded: () => Promise.resolve(isOver) });
    const got: LogPiece[] = [];
    const reading = (async () => {
      for await (const piece of pieces) got.push(piece);
    })();
    await vi.waitUntil(() => numbers(got).length === 15, patience);
    for (let round = 0; round < 5; round++) {
      write(3);
      const before = numbers(got).length;
      rotate();
      write(1);
      await vi.waitUntil(
        () => numbers(got).length === before + 4 || numbers(got).length === written,
        patience,
      );
    }
    isOver = true;
    await reading;
    expect(numbers(got)).toEqual(upTo(written));
  });

  it("goes on after a time, in whichever file that is", async () => {
    for (let round = 0; round < 3; round++) {
      if (round > 0) rotate();
      write(4);
    }
    for (const after of [0, 1, 4, 6, 8, 11, 12])
      expect([after, numbers(await all(follow(time(after))))]).toEqual([after, upTo(12, after + 1)]);
  });

  it("joins the parts of long lines, also over a rotation, and tells the streams apart", async () => {
    appendFileSync(file, entry(1, "long ") + entry(2, "other\n", "stderr"));
    rotate();
    appendFileSync(file, entry(1, "line ä\n"));
    const [...pieces] = (await all(follow())).flat();
    expect(pieces).toEqual([
      { at: time(2), stream: "stderr", text: "other" },
      {
        at: expect.stringMatching(/^2027-01-15T08:00:00\.00/) as string,
        stream: "stdout",
        text: "long line ä",
      },
    ]);
  });

  it("ends with what has no newline, which begins no line of a container that is started again", async () => {
    appendFileSync(file, entry(1) + entry(2, "line 2"));
    expect(numbers(await all(follow()))).toEqual([1, 2]);
    appendFileSync(file, entry(3));
    expect(numbers(await all(follow(time(2))))).toEqual([3]);
    expect(numbers(await all(follow()))).toEqual([1, 2, 3]);
  });

  it("has what ended without a newline once, also where the next run writes to the other stream first", async () => {
    const flushed = new Set<string>();
    appendFileSync(file, entry(1) + entry(2, "line 2"));
    expect(numbers(await all(follow("", { flushed })))).toEqual([1, 2]);
    appendFileSync(file, entry(3, "line 3\n", "stderr"));
    expect(numbers(await all(follow(time(2), { flushed })))).toEqual([3]);
    appendFileSync(file, entry(4));
    expect(numbers(await all(follow(time(3), { flushed })))).toEqual([4]);
    expect(numbers(await all(follow()))).toEqual([1, 3, 2, 4]);
  });

  it("says how many lines it left out for a reader who was too slow, at their place, while the engine deletes files", async () => {
    write(10);
    const pieces = follow();
    const got = [(await pieces.next()).value as LogPiece];
    expect(numbers(got)).toEqual(upTo(10));
    // Nobody reads on meanwhile.
    for (let round = 0; round < 8; round++) {
      write(10);
      await openedBySelf(statSync(file).ino);
      rotate();
    }
    write(10);
    await openedBySelf(statSync(file).ino);
    const rest = await all(pieces);
    got.push(...rest);
    const seen = numbers(got);
    const left = seen.filter((n) => n < 0);
    const received = seen.filter((n) => n > 0);
    expect(left.length).toBe(1);
    expect(received.length - (left[0] ?? 0)).toBe(written);
    // What stands after the gap is what follows it.
    const gap = seen.findIndex((n) => n < 0);
    expect(seen.slice(0, gap)).toEqual(upTo(10));
    expect(seen.slice(gap + 1)).toEqual(upTo(written, 10 - (left[0] ?? 0) + 1));
    const marker = got.find((piece) => !Array.isArray(piece));
    expect(marker).toMatchObject({ at: time(10 - (left[0] ?? 0)) });
  });

  it("says that lines were left out where files came and went before it looked", async () => {
    write(3);
    const pieces = follow();
    const got = [(await pieces.next()).value as LogPiece];
    for (let round = 0; round < 4; round++) {
      rotate();
      write(3);
    }
    got.push(...(await all(pieces)));
    expect(numbers(got)).toEqual([...upTo(3), -Infinity, ...upTo(15, 7)]);
  });
});

/** This process has the file open: it has been seen by the reader. */
async function openedBySelf(inode: number): Promise<void> {
  await vi.waitUntil(
    () =>
      readdirSync("/proc/self/fd").some((fd) => {
        try {
          return statSync(`/proc/self/fd/${fd}`).ino === inode;
        } catch {
          return false;
        }
      }),
    10_000,
  );
}

const frame = (text: string): Buffer => {
  const header = Buffer.alloc(8);
  header[0] = 1;
  header.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([header, Buffer.from(text)]);
};

it("a log of the engine's API is read without a pause, and what a slow reader has no room for is counted", async () => {
  let read = 0;
  const chunks = async function* () {
    for (let n = 1; n <= 30_000; n++) {
      read = n;
      yield frame(`${time(n)} line ${n}\n`);
      if (n % 1000 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const pieces = neverWaiting(chunks(), { after: time(5), flushed: new Set() });
  const got = [(await pieces.next()).value as LogPiece];
  await vi.waitUntil(() => read === 30_000, patience);
  got.push(...(await all(pieces)));
  const seen = numbers(got);
  const left = seen.filter((n) => n < 0).reduce((sum, n) => sum - n, 0);
  expect(left).toBeGreaterThan(0);
  expect(seen.filter((n) => n > 0).length + left).toBe(30_000 - 5);
});

it("a log of the engine's API ends with what the container wrote without a newline", async () => {
  const chunks = async function* () {
    yield frame(`${time(1)} line 1\n`);
    yield await Promise.resolve(frame(`${time(2)} line 2`));
  };
  expect(numbers(await all(neverWaiting(chunks(), { after: "", flushed: new Set() })))).toEqual([1, 2]);
});

describe("a follower's batches", () => {
  const line = (n: number): { containerId: string; line: SiteLogLine } => ({
    containerId: "c",
    line: { at: time(n), stream: "stdout", text: "x".repeat(1000) },
  });

  it("wait for acknowledgements, and the reader of the log for the follower", async () => {
    const over = new AbortController();
    const delivered: number[] = [];
    const batches = new LineBatches(({ length }) => delivered.push(length), over.signal, 3);
    let hasRoom = false;
    const adding = batches.add(upTo(1000).map(line)).then(() => (hasRoom = true));
    await vi.waitUntil(() => delivered.length === 3, patience);
    await new Promise((resolve) => setImmediate(resolve));
    expect([delivered.length, hasRoom]).toEqual([3, false]);
    for (let sent = 3; delivered.reduce((sum, count) => sum + count, 0) < 1000; sent++) {
      expect(delivered.length).toBe(sent);
      batches.acknowledged();
      await vi.waitUntil(() => delivered.length > sent, patience);
    }
    await adding;
    expect(hasRoom).toBe(true);
    over.abort();
  });
});
