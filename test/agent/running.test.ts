import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { openRunningDatabases } from "../../agent/databases/running.ts";
import type { ContainerEvent, Engine } from "../../agent/docker/engine.ts";
import {
  engineTimeBefore,
  LogParser,
  nanosecondAfter,
  withNanoseconds,
} from "../../agent/docker/log-parser.ts";
import { secretsIn } from "../../agent/docker/specs.ts";
import { atStartSpeed, holdTo } from "../../agent/docker/start-speed.ts";
import { readUsage } from "../../agent/docker/usage.ts";
import type { Ingress, Target } from "../../agent/ingress/ingress.ts";
import { QuestionServer, type Means } from "../../agent/question-server.ts";
import { LimitWarnings } from "../../agent/running/limit-warnings.ts";
import { LineBatches } from "../../agent/running/line-batches.ts";
import { LogPlaces } from "../../agent/running/log-places.ts";
import { databaseCrashes, databasesStillOut } from "../../agent/running/databases-out.ts";
import { openRecords, type Crash, type DatabaseCrash, type Records } from "../../agent/running/records.ts";
import { followSiteLog, keepLastLines, readSiteLog } from "../../agent/running/site-log.ts";
import { startSampling, sumOf, usedBetween } from "../../agent/running/sampler.ts";
import { watchSites } from "../../agent/running/watch.ts";
import { FromAgent, maxFrameBytes } from "../../protocol/agent/messages.ts";
import type { SiteLogLine } from "../../protocol/agent/running.ts";
import { formatId } from "../../protocol/ids.ts";
import { frame } from "../support/engine-frame.ts";
import { noneKept, noSources } from "../support/none-kept.ts";
import { noneRequested } from "../support/none-requested.ts";
import { databaseExits } from "../../agent/databases/exits.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const siteId = formatId("site", 1, new Uint8Array(10));
const deploymentId = formatId("deployment", 1, new Uint8Array(10));
const second = (n: number) => `2026-01-01T00:00:0${n}.000000000Z`;

let folder: string;
let records: Records;

describe("a container's log", () => {
  const raw = Buffer.concat([
    frame(1, `${second(1)} one\n`),
    frame(2, `${second(1)} at the same time\n`),
    frame(1, `${second(0)} späť\n`),
    frame(1, `${second(2)} long `),
    frame(2, `${second(2)} between\n`),
    frame(1, `${second(2)} line\n`),
    frame(1, `${second(3)} \n`),
  ]);
  const entries = [
    { at: second(1), stream: "stdout", text: "one" },
    { at: "2026-01-01T00:00:01.000000001Z", stream: "stderr", text: "at the same time" },
    { at: "2026-01-01T00:00:01.000000002Z", stream: "stdout", text: "späť" },
    { at: second(2), stream: "stderr", text: "between" },
    { at: "2026-01-01T00:00:02.000000001Z", stream: "stdout", text: "long line" },
    { at: second(3), stream: "stdout", text: "" },
  ];

  it("is the same however it is cut, each line with a time of its own", () => {
    expect(new LogParser().push(raw)).toEqual(entries);
    for (const size of [1, 3, 7, 50]) {
      const parser = new LogParser();
      const got = [];
      for (let at = 0; at < raw.length; at += size) got.push(...parser.push(raw.subarray(at, at + size)));
      expect([size, got]).toEqual([size, entries]);
    }
  });

  it("has nothing that the engine says of it, nor what begins with no time", () => {
    const parser = new LogParser();
    const [one, two] = [frame(1, `${second(1)} one\n`), frame(2, `${second(2)} two\n`)];
    const others = [
      damage,
      frame(1, "Error grabbing logs\n"),
      frame(1, "2026-99-01T00:00:00.000000000Z x\n"),
    ];
    expect(parser.push(Buffer.concat([one, ...others, two])).map(({ text }) => text)).toEqual(["one", "two"]);
  });

  it("has times that carry over and that the engine takes", () => {
    expect(nanosecondAfter("2026-12-31T23:59:59.999999999Z")).toBe("2027-01-01T00:00:00.000000000Z");
    expect(withNanoseconds("2026-01-01T00:00Z")).toBe(second(0));
    expect(withNanoseconds("2026-01-01T00:00:00.12Z")).toBe("2026-01-01T00:00:00.120000000Z");
    expect(engineTimeBefore("2026-01-01T00:00:01.000000005Z")).toBe("1767225600.000000005");
  });
});

/** What the engine says where a file of its log is damaged, as after a power cut. */
const damage = frame(3, "Error grabbing logs: invalid character '\\x00' looking for beginning of value\n");

describe("the last lines of a container", () => {
  const part = (line: number, text: string) => frame(1, `${second(line)} ${text}`);
  /** The engine counts the parts of a long line, which has one time. */
  const engineOf = (messages: Buffer[], running = true) =>
    ({
      listContainers: () => Promise.resolve([{ id: "c" }]),
      inspectContainer: () =>
        Promise.resolve({ env: [], labels: { "berth.secrets": "", "berth.site": siteId }, running }),
      readLog: (_: string, { tail }: { tail: number }) =>
        Promise.resolve(Buffer.concat(messages.slice(-tail))),
    }) as unknown as Engine;
  const read = async (messages: Buffer[], tail: number, running?: boolean) => {
    const logs = { engine: engineOf(messages, running), agentId: "agent", records, onStart: () => undefined };
    const lines = await readSiteLog(logs, siteId, { tail, after: null, masks: ["s3cret"] });
    return lines.map(({ text }) => text);
  };
  const long = (line: number) =>
    [...Array(40).fill(part(line, "x")), part(line, `${line} ends\n`)] as Buffer[];

  it("are as many as were asked for, however long they are", async () => {
    const whole = (line: number) => `${"x".repeat(40)}${line} ends`;
    expect(await read([1, 2, 3, 4].flatMap(long), 3)).toEqual([2, 3, 4].map(whole));
    expect(await read([1, 2].flatMap(long), 3)).toEqual([1, 2].map(whole));
  });

  it("of a log that is damaged are those that can be read, and say that there are others", async () => {
    const messages = [part(1, "one\n"), part(2, "two\n"), damage];
    expect(await read(messages, 5)).toEqual(["one", "two", "Lines left out"]);
    expect(await read([damage], 5)).toEqual([]);
    await keepLastLines({ engine: engineOf(messages), records }, "c");
    expect(records.lastLines(siteId)).toMatchObject([{ lines: [{ text: "one" }, { text: "two" }] }]);
  });

  it("end with what it printed before its end, also without a newline, and are kept with it", async () => {
    const messages = [part(1, "one\n"), part(2, "fatal: s3c"), part(2, "ret")];
    expect(await read(messages, 5)).toEqual(["one"]);
    expect(await read(messages, 5, false)).toEqual(["one", "fatal: •••"]);
    expect(await read([...messages, part(3, "started again\n")], 2)).toEqual(["fatal: •••", "started again"]);
    await keepLastLines({ engine: engineOf(messages, false), records }, "c");
    expect(records.lastLines(siteId)).toMatchObject([
      { lines: [{ text: "one" }, { text: "fatal: s3cret" }] },
    ]);
  });

  it("begin with no half of a line, in which half a secret would be known to nobody", async () => {
    const cut = [part(1, "a s3c"), part(1, "ret\n"), part(2, "next\n")];
    expect(await read(cut, 2)).toEqual(["a •••", "next"]);
    expect(await read(cut, 1)).toEqual(["next"]);
    const first = Array.from({ length: 1200 }, () => part(1, "s3cret"));
    expect(await read([...first, part(1, "\n"), part(2, "next\n")], 5)).toEqual(["next"]);
  });
});

it("a log of many containers is followed in messages that fit the link, each with the places in all of them", async () => {
  const ids = Array.from({ length: 150 }, (_, index) => `${index}`.padEnd(64, "a"));
  const lines = (from: number, count: number) =>
    Buffer.concat(
      Array.from({ length: count }, (_, index) =>
        frame(1, `2026-01-01T00:00:01.${String(from + index).padStart(9, "0")}Z x\n`),
      ),
    );
  const engine = {
    listContainers: () => Promise.resolve(ids.map((id) => ({ id }))),
    inspectContainer: () => Promise.resolve({ env: [], labels: {}, running: true }),
    readLog: () => Promise.resolve(lines(1, 1)),
    followLog: async function* (id: string, _: unknown, signal: AbortSignal) {
      if (id === ids[0]) yield lines(2, 5000);
      await once(signal, "abort");
    },
  } as unknown as Engine;
  const over = new AbortController();
  const sent: object[] = [];
  let lineCount = 0;
  await followSiteLog(
    { engine, agentId: "agent", records, onStart: () => undefined },
    siteId,
    { tail: 150, after: null, masks: [] },
    {
      signal: over.signal,
      window: null,
      onAcknowledged: () => undefined,
      deliver: (found) => {
        lineCount += found.length;
        sent.push({ type: "answer", requestId: "r", answer: { kind: "logs", lines: found }, last: false });
      },
    },
  );
  await vi.waitUntil(() => lineCount === 5150, 10_000);
  over.abort();
  expect(sent.flatMap((message) => FromAgent.safeParse(message).error?.issues.slice(0, 1) ?? [])).toEqual([]);
  const longest = Math.max(...sent.map((message) => Buffer.byteLength(JSON.stringify(message))));
  expect(longest).toBeLessThan(maxFrameBytes);
  const places = /"place":"[^;"]+(?:;[0-9a-f]{12}-\d+){100}/;
  expect(places.test(JSON.stringify(sent.at(-1)))).toBe(true);
});

describe("a log of two containers that is followed", () => {
  type Entry = readonly [at: string, text: string];
  const time = (n: number) => `2026-01-01T00:00:01.${String(n).padStart(9, "0")}Z`;
  const bytesOf = (entries: readonly Entry[]) =>
    Buffer.concat(entries.map(([at, text]) => frame(1, `${at} ${text}\n`)));

  const follow = async (
    engine: Engine,
    { tail, after }: { tail: number; after: string | null },
    count: number,
  ) => {
    const logs = { engine, agentId: "agent", records, onStart: () => undefined };
    const got: SiteLogLine[] = [];
    const over = new AbortController();
    const follower = {
      signal: over.signal,
      deliver: (lines: SiteLogLine[]) => got.push(...lines),
      window: null,
      onAcknowledged: () => undefined,
    };
    await followSiteLog(logs, siteId, { tail, after, masks: [] }, follower);
    await vi.waitUntil(() => got.length >= count, 10_000);
    over.abort();
    return got;
  };

  /** What each has written at first, and then, while it is followed; both are read at moments of their own. */
  const followed = async (
    written: Record<string, [Entry[], Entry[]]>,
    {
      after,
      count,
      tail = 10,
      gone = [],
    }: { after: string | null; count: number; tail?: number; gone?: string[] },
  ) => {
    const engine = {
      listContainers: () => Promise.resolve(Object.keys(written).map((id) => ({ id }))),
      inspectContainer: (id: string) =>
        Promise.resolve(
          gone.includes(id) ? null : { env: [], labels: { "berth.secrets": "" }, running: false },
        ),
      readLog: (id: string) => Promise.resolve(bytesOf(written[id]?.[0] ?? [])),
      followLog: async function* (id: string) {
        if (gone.includes(id)) throw new Error(`No such container: ${id}`);
        yield await Promise.resolve(bytesOf((written[id] ?? []).flat()));
      },
    } as unknown as Engine;
    return follow(engine, { tail, after }, count);
  };
  const [first, other] = ["1".repeat(64), "2".repeat(64)];

  it("begins in each where its last lines end, also where the other was read a moment later", async () => {
    const written: Record<string, [Entry[], Entry[]]> = {
      [first]: [[[time(1), "a 1"]], [[time(2), "a 2"]]],
      [other]: [[[time(3), "b 3"]], [[time(4), "b 4"]]],
    };
    const got = await followed(written, { after: null, count: 4 });
    expect(got.map(({ text }) => text)).toEqual(["a 1", "a 2", "b 3", "b 4"]);
  });

  it("goes on in each after the line that its reader has, by the place of the last", async () => {
    const late: Record<string, [Entry[], Entry[]]> = {
      [first]: [[[time(1), "a 1"]], []],
      [other]: [[[time(3), "b 3"]], []],
    };
    const [, last] = await followed(late, { after: null, count: 2 });
    const written: Record<string, [Entry[], Entry[]]> = {
      [first]: [[[time(1), "a 1"]], [[time(2), "a 2"]]],
      [other]: [[[time(3), "b 3"]], [[time(4), "b 4"]]],
    };
    const got = await followed(written, { after: last?.place ?? "", count: 2 });
    expect(got.map(({ text }) => text)).toEqual(["a 2", "b 4"]);
  });

  it("goes on where the engine did not answer for a while", async () => {
    const written: Entry[] = [[time(1), "a 1"]];
    let unanswered = 0;
    const engine = {
      listContainers: () => Promise.resolve([{ id: first }]),
      inspectContainer: () =>
        unanswered-- > 0
          ? Promise.reject(new Error("ECONNREFUSED"))
          : Promise.resolve({ env: [], labels: { "berth.secrets": "" }, running: true }),
      followLog: async function* () {
        yield await Promise.resolve(bytesOf(written));
        if (written.length > 1) return;
        written.push([time(2), "a 2"]);
        unanswered = 3;
        throw new Error("ECONNRESET");
      },
    } as unknown as Engine;
    const got = await follow(engine, { tail: 10, after: time(0) }, 2);
    expect(got.map(({ text }) => text)).toEqual(["a 1", "a 2"]);
  });

  it("goes on in one that has ended after the line that a slow reader has, not after its last", async () => {
    // More than a message, of times before the other's.
    const late = Array.from({ length: 200 }, (_, n) => [time(n + 1), "x".repeat(1000)] as const);
    const otherIsRead = Promise.withResolvers<void>();
    const hasEnded = Promise.withResolvers<void>();
    let looks = 0;
    const engine = {
      listContainers: () => Promise.resolve([first, other].map((id) => ({ id }))),
      inspectContainer: (id: string) => {
        // To read it twice, then whether it runs again.
        if (id === first && ++looks === 3) hasEnded.resolve();
        return Promise.resolve({ env: [], labels: { "berth.secrets": "" }, running: false });
      },
      followLog: async function* (id: string) {
        if (id === first) await otherIsRead.promise;
        yield bytesOf(id === first ? late : [[time(900), "b"]]);
      },
    } as unknown as Engine;
    const got: SiteLogLine[][] = [];
    let acknowledge = (): void => undefined;
    const over = new AbortController();
    const follower = {
      signal: over.signal,
      deliver: (lines: SiteLogLine[]) => got.push(lines),
      window: 1,
      onAcknowledged: (callback: () => void) => void (acknowledge = callback),
    };
    const logs = { engine, agentId: "agent", records, onStart: () => undefined };
    await followSiteLog(logs, siteId, { tail: 10, after: time(0), masks: [] }, follower);
    await vi.waitUntil(() => got.length === 1, 10_000);
    otherIsRead.resolve();
    await hasEnded.promise;
    await new Promise((resolve) => setImmediate(resolve));
    for (let sent = 2; got.flat().length < 201; sent++) {
      acknowledge();
      await vi.waitUntil(() => got.length === sent, 10_000);
      const { at = "", place = at } = got.flat().at(-1) ?? {};
      const seen = new LogPlaces(place).of(first);
      expect(seen).toBe(got.flat().length < 201 ? at : time(900));
    }
    over.abort();
  });

  describe("of which one is removed while it is asked for", () => {
    const gone = [first];
    const kept = [1, 2].map((n) => ({ at: time(n), stream: "stdout" as const, text: `kept ${n}` }));
    const written: Record<string, [Entry[], Entry[]]> = {
      [first]: [[], []],
      [other]: [[[time(3), "b 3"]], [[time(4), "b 4"]]],
    };
    beforeEach(() => records.addLastLines(siteId, first, kept));

    it("has the lines that were kept of that one among its last", async () => {
      const got = await followed(written, { after: null, count: 4, gone });
      expect(got.map(({ text }) => text)).toEqual(["kept 1", "kept 2", "b 3", "b 4"]);
    });

    it("does not have the lines before its last ones after a broken connection", async () => {
      const [last] = await followed(written, { after: null, count: 1, tail: 1, gone });
      expect(last?.text).toBe("b 3");
      const left = { [other]: written[other] ?? [[], []] };
      const got = await followed(left, { after: last?.place ?? last?.at ?? "", count: 1 });
      expect(got.map(({ text }) => text)).toEqual(["b 4"]);
    });

    it("goes on with those of them that its reader does not have", async () => {
      const got = await followed(written, { after: time(1), count: 3, gone });
      expect(got.map(({ text }) => text)).toEqual(["b 3", "b 4", "kept 2"]);
    });
  });
});

it("what an app wrote without a newline before its end is followed once, also where its next run writes errors first", async () => {
  const ended = [frame(1, `${second(1)} one\n`), frame(1, `${second(2)} half`)];
  const runs = [ended, [...ended, frame(2, `${second(3)} error\n`), frame(1, `${second(4)} next\n`)]];
  const engine = {
    listContainers: () => Promise.resolve([{ id: "c" }]),
    inspectContainer: () => Promise.resolve({ env: [], labels: {}, running: true }),
    followLog: async function* (_: string, __: unknown, signal: AbortSignal) {
      const run = runs.shift();
      if (run) yield Buffer.concat(run);
      else await once(signal, "abort");
    },
  } as unknown as Engine;
  const over = new AbortController();
  const got: string[] = [];
  await followSiteLog(
    { engine, agentId: "agent", records, onStart: () => undefined },
    siteId,
    { tail: 10, after: second(0), masks: [] },
    {
      signal: over.signal,
      window: null,
      onAcknowledged: () => undefined,
      deliver: (lines) => got.push(...lines.map(({ text }) => text)),
    },
  );
  await vi.waitUntil(() => got.includes("next"), 10_000);
  over.abort();
  expect(got).toEqual(["one", "half", "error", "next"]);
});

it("the secrets of a container are those it was made with; of an old one, all its values", () => {
  const container = { env: ["A=x=1", "B=2"], labels: { "berth.secrets": "A" } };
  expect(secretsIn(container as never)).toEqual(["x=1"]);
  expect(secretsIn({ ...container, labels: { "berth.secrets": "" } } as never)).toEqual([]);
  expect(secretsIn({ ...container, labels: {} } as never)).toEqual(["x=1", "2"]);
});

describe("a sample", () => {
  const reading = {
    cpuNanoseconds: 5e9,
    memoryBytes: 1.5 * 1024 * 1024,
    memoryLimitBytes: 2 * 1024 * 1024,
    receivedBytes: 100,
    sentBytes: 50,
    pid: 7,
  };

  it("is what came since the last reading", () => {
    const now = { ...reading, cpuNanoseconds: 8e9, receivedBytes: 160, sentBytes: 50 };
    expect(usedBetween({ ...reading, atMs: 0 }, { ...now, atMs: 60_000 })).toEqual({
      cpuMilli: 50,
      memoryMb: 1.5,
      networkInBytes: 60,
      networkOutBytes: 0,
    });
  });

  it("is the sum of all replicas", () => {
    const part = { cpuMilli: 1.5, memoryMb: 10.1, networkInBytes: 3, networkOutBytes: 4 };
    expect(sumOf([part, part, part])).toEqual({
      cpuMilli: 4.5,
      memoryMb: 30.3,
      networkInBytes: 9,
      networkOutBytes: 12,
    });
  });

  it("begins anew with the counters", () => {
    const now = { ...reading, cpuNanoseconds: 6e8, receivedBytes: 10, atMs: 60_000 };
    expect(usedBetween({ ...reading, atMs: 0 }, now)).toMatchObject({ cpuMilli: 10, networkInBytes: 10 });
  });

  it("begins anew with another process, however much it used", () => {
    const now = { ...reading, cpuNanoseconds: 6e9, atMs: 60_000, pid: 8 };
    expect(usedBetween({ ...reading, atMs: 0 }, now)).toMatchObject({ cpuMilli: 100, networkInBytes: 100 });
  });

  const devices = ["Inter-| head", "  lo: 9 0 0 0 0 0 0 0 9 0", "eth0: 70 1 0 0 0 0 0 0 80 2 0"].join("\n");
  const usage = {
    cpuNanoseconds: 5000,
    memoryBytes: 70,
    memoryLimitBytes: 200,
    receivedBytes: 70,
    sentBytes: 80,
  };
  const kernels = {
    "cgroup v1": {
      "proc/7/cgroup": "4:memory:/docker/c1\n2:cpuacct,cpu:/docker/c1\n0::/docker/c1\n",
      "sys/fs/cgroup/cpuacct/docker/c1/cpuacct.usage": "5000\n",
      "sys/fs/cgroup/memory/docker/c1/memory.usage_in_bytes": "100\n",
      "sys/fs/cgroup/memory/docker/c1/memory.limit_in_bytes": "200\n",
      "sys/fs/cgroup/memory/docker/c1/memory.stat": "inactive_file 1\ntotal_inactive_file 30\n",
    },
    "cgroup v2": {
      "proc/7/cgroup": "0::/system.slice/docker-c1.scope\n",
      "sys/fs/cgroup/system.slice/docker-c1.scope/cpu.stat": "usage_usec 5\nuser_usec 3\n",
      "sys/fs/cgroup/system.slice/docker-c1.scope/memory.current": "100\n",
      "sys/fs/cgroup/system.slice/docker-c1.scope/memory.max": "200\n",
      "sys/fs/cgroup/system.slice/docker-c1.scope/memory.stat": "anon 60\ninactive_file 30\n",
    },
  };
  it.each(Object.entries(kernels))("comes from the files of %s", (_, files) => {
    for (const [path, text] of Object.entries({ ...files, "proc/7/net/dev": devices })) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    expect(readUsage("c1", 7, folder)).toEqual(usage);
    expect(readUsage("c2", 7, folder)).toBeNull();
    expect(readUsage("c1", 8, folder)).toBeNull();
  });
});

describe("a container that starts", () => {
  const kernels = {
    "cgroup v1": [
      "4:memory:/docker/c1\n2:cpuacct,cpu:/docker/c1\n0::/docker/c1\n",
      "cpu/docker/c1/cpu.cfs_quota_us",
      "",
    ],
    "cgroup v2": ["0::/system.slice/docker-c1.scope\n", "system.slice/docker-c1.scope/cpu.max", " 100000"],
  } as const;
  const container = { id: "c1", pid: 7, cpuMilli: 500 };

  it.each(Object.entries(kernels))(
    "has two processors until it has answered for a while: %s",
    async (_, [groups, name, rest]) => {
      vi.useFakeTimers();
      onTestFinished(() => void vi.useRealTimers());
      const root = temporaryFolder();
      const file = join(root, "sys/fs/cgroup", name);
      for (const [path, text] of [
        [join(root, "proc/7/cgroup"), groups],
        [file, `50000${rest}`],
        [join(dirname(file), "cpu.cfs_period_us"), "100000"],
      ] as const) {
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, text);
      }
      // A control file takes what is written as a whole; of this one the end stays as it was.
      const quota = () => readFileSync(file, "utf8").slice(0, 5);
      const answered = Promise.withResolvers<string>();
      const waiting = atStartSpeed(container, () => answered.promise, root);
      expect(quota()).toBe("20000");
      answered.resolve("healthy");
      expect(await waiting).toBe("healthy");
      expect(quota()).toBe("20000");
      await vi.advanceTimersByTimeAsync(2000);
      expect(quota()).toBe("50000");
    },
  );

  it("and one that is slowed below a hundredth of a processor has its millisecond of a longer time", () => {
    const root = temporaryFolder();
    const groups = { 7: "4:memory:/docker/c1\n2:cpuacct,cpu:/docker/c1\n", 8: "0::/docker/c2\n" };
    const files = {
      v1: ["cpu/docker/c1", "cpu.cfs_period_us", "cpu.cfs_quota_us"],
      v2: ["docker/c2", "cpu.max"],
    };
    for (const [pid, text] of Object.entries(groups)) {
      mkdirSync(join(root, "proc", pid), { recursive: true });
      writeFileSync(join(root, "proc", pid, "cgroup"), text);
    }
    for (const [name = "", ...own] of Object.values(files)) {
      mkdirSync(join(root, "sys/fs/cgroup", name), { recursive: true });
      for (const one of own) writeFileSync(join(root, "sys/fs/cgroup", name, one), "");
    }
    holdTo(container, 1, root);
    holdTo({ ...container, id: "c2", pid: 8 }, 1, root);
    const read = ([name = "", ...own]: string[]) =>
      own.map((one) => readFileSync(join(root, "sys/fs/cgroup", name, one), "utf8"));
    expect([read(files.v1), read(files.v2)]).toEqual([["1000000", "1000"], ["1000 1000000"]]);
  });
});

it("a site that starts again and again, and never answers, is held to its pack after five minutes of an hour", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const root = temporaryFolder();
  const file = join(root, "sys/fs/cgroup/docker/loop/cpu.max");
  for (const [path, text] of [
    [join(root, "proc/7/cgroup"), "0::/docker/loop\n"],
    [file, "50000 100000"],
  ] as const) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  const start = async (siteId: string, ms: number) => {
    const container = { id: "loop", pid: 7, cpuMilli: 500, labels: { "berth.site": siteId } };
    const never = new Promise<void>((_, reject) => setTimeout(() => reject(new Error("silent")), ms));
    const waiting = atStartSpeed(container, () => never, root).catch(() => undefined);
    const isFast = readFileSync(file, "utf8").startsWith("20000");
    await vi.advanceTimersByTimeAsync(ms + 2000);
    await waiting;
    expect(readFileSync(file, "utf8")).toMatch(/^50000/);
    return isFast;
  };
  const fast: boolean[] = [];
  for (let time = 0; time < 8; time++) fast.push(await start("looping", 90_000));
  expect(fast).toEqual([true, true, true, true, true, false, false, false]);
  expect(await start("another", 90_000)).toBe(true);
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(await start("looping", 1000)).toBe(true);
  for (let time = 0; time < 50; time++) expect(await start("quick", 1000)).toBe(true);
});

describe("a follower that is slower than the site", () => {
  it("holds the site's lines back instead of the agent's memory", async () => {
    const delivered: unknown[] = [];
    const over = new AbortController();
    const batches = new LineBatches((lines) => delivered.push(...lines), over.signal);
    const line = {
      containerId: "c",
      line: { at: second(1), stream: "stdout" as const, text: "x".repeat(10_000) },
    };
    let added = 0;
    const adding = (async () => {
      for (; added < 100; added++) await batches.add([line]);
    })();
    await new Promise((resolve) => setImmediate(resolve));
    expect(added).toBeLessThan(30);
    await adding;
    expect(delivered.length).toBeGreaterThan(60);
    over.abort();
    await batches.add([line]);
  });
});

beforeEach(() => {
  folder = temporaryFolder();
  records = openRecords(join(folder, "running.db"));
});
afterEach(() => records.close());

const crash: Crash = { type: "crashed", siteId, deploymentId, error: "It exited." };
const sample = { cpuMilli: 1, memoryMb: 2, networkInBytes: 3, networkOutBytes: 4, diskMb: null };

describe("what the host keeps of its sites", () => {
  it("survives the agent, a day of samples and 200 events each", () => {
    const begin = Date.parse("2026-01-01T00:00:00Z");
    for (let minute = 0; minute < 1500; minute++)
      records.addSamples(new Date(begin + minute * 60_000), 60_000, [[siteId, sample]]);
    for (let n = 0; n < 250; n++)
      records.addEvent(siteId, "c", { at: new Date(begin).toISOString(), kind: "exit", detail: String(n) });
    records.close();
    records = openRecords(join(folder, "running.db"));
    const samples = records.samples(siteId);
    expect(samples).toHaveLength(1440);
    expect(samples.at(-1)).toEqual({ at: "2026-01-02T00:59:00.000Z", ...sample });
    expect(records.events(siteId).map(({ detail }) => detail)).toEqual(
      Array.from({ length: 200 }, (_, index) => String(index + 50)),
    );
  });

  it("goes on being kept after another program held its file: a round of samples that could not be written takes nothing else with it", () => {
    const other = new DatabaseSync(join(folder, "running.db"));
    onTestFinished(() => other.close());
    other.exec("BEGIN IMMEDIATE");
    const add = (time: string) => records.addSamples(new Date(time), 60_000, [[siteId, sample]]);
    expect(() => add("2026-01-01T00:01:00Z")).toThrow("database is locked");
    other.exec("ROLLBACK");
    add("2026-01-01T00:02:00Z");
    records.addEvent(siteId, "c", { at: "2026-01-01T00:02:00.000Z", kind: "exit", detail: "" });
    records.close();
    records = openRecords(join(folder, "running.db"));
    expect(records.samples(siteId)).toMatchObject([{ at: "2026-01-01T00:02:00.000Z" }]);
    expect(records.events(siteId)).toHaveLength(1);
  });

  it("of older days is kept by the quarter of an hour for a week and by the hour for thirty days", () => {
    const begin = Date.parse("2026-01-01T00:00:00Z");
    const add = (from: number, to: number) => {
      for (let minute = from; minute < to; minute++)
        // A round takes a moment.
        records.addSamples(new Date(begin + minute * 60_000 + 7), 60_000, [
          [siteId, { ...sample, cpuMilli: minute % 15, memoryMb: minute % 60, networkInBytes: 1 }],
        ]);
    };
    add(1, 16);
    expect(records.samples(siteId, "7d")).toEqual([
      {
        ...sample,
        at: "2026-01-01T00:15:00.000Z",
        cpuMilli: 7,
        memoryMb: 15,
        networkInBytes: 15,
        networkOutBytes: 15 * sample.networkOutBytes,
      },
    ]);
    // The agent was away; the interval that is not over is there too.
    records.close();
    records = openRecords(join(folder, "running.db"));
    add(90, 32 * 1440 + 39);
    const [quarters, hours] = [records.samples(siteId, "7d"), records.samples(siteId, "30d")];
    expect([quarters.length, hours.length]).toEqual([7 * 96 + 1, 30 * 24 + 1]);
    expect([quarters.at(0)?.at, quarters.at(-1)]).toMatchObject([
      "2026-01-26T00:45:00.000Z",
      { at: "2026-02-02T00:45:00.000Z", networkInBytes: 8 },
    ]);
    expect([hours.at(0)?.at, hours.at(-1)]).toMatchObject([
      "2026-01-03T01:00:00.000Z",
      { at: "2026-02-02T01:00:00.000Z", networkInBytes: 38 },
    ]);
    expect(hours.at(100)).toMatchObject({ cpuMilli: 7, memoryMb: 59, networkInBytes: 60 });
    records.keepOnly([], new Date());
    expect(records.samples(siteId, "30d")).toEqual([]);
  });

  it("goes with the site", () => {
    const at = new Date("2026-01-01T00:00:00Z");
    records.addSamples(at, 60_000, [[siteId, sample]]);
    records.addEvent(siteId, "c", { at: at.toISOString(), kind: "exit", detail: "" });
    records.keepOnly([siteId], new Date("2026-01-02T00:00:00Z"));
    expect([records.samples(siteId).length, records.events(siteId).length]).toEqual([1, 1]);
    records.keepOnly([], new Date("2026-01-01T00:30:00Z"));
    expect([records.samples(siteId).length, records.events(siteId).length]).toEqual([0, 1]);
    records.keepOnly([], new Date("2026-01-01T02:00:00Z"));
    expect(records.events(siteId)).toEqual([]);
  });

  it("stays while only others go", () => {
    const ids = ["a", "b", "c", "d", "e"];
    for (const hour of [0, 1, 2]) {
      const at = new Date(Date.UTC(2026, 0, 1, hour));
      records.addSamples(
        at,
        60_000,
        ids.map((id) => [id, sample]),
      );
      // Of e the last event is two hours old, of the others none is older than the moment.
      for (const id of ids.slice(0, hour === 0 ? 5 : 4))
        records.addEvent(id, id, { at: at.toISOString(), kind: "exit", detail: "" });
    }
    const left = () => ids.map((id) => [records.samples(id).length, records.events(id).length]);
    records.keepOnly(["b", "d"], new Date("2026-01-01T02:00:00Z"));
    expect(left()).toEqual([
      [0, 3],
      [3, 3],
      [0, 3],
      [3, 3],
      [0, 0],
    ]);
  });
});

it("a minute's samples of a hundred sites ask the engine nothing, unless a container has started or ended", async () => {
  const ids = Array.from({ length: 100 }, (_, index) => `c${index}`);
  const asked: string[] = [];
  const engine = {
    inspectContainer: (id: string) => {
      asked.push(id);
      return Promise.resolve({ running: true, pid: 1, labels: {} });
    },
    listContainers: () => {
      asked.push("databases");
      return Promise.resolve([{ id: "d", running: true, labels: { "berth.database": "db" } }]);
    },
    volumes: () => Promise.resolve([]),
  } as unknown as Engine;
  const ingress = {
    sites: () => ids,
    lost: () => [siteId],
    current: (id: string) => [{ containerId: id, address: "10.0.0.2", port: 3000 }],
  } as unknown as Ingress;
  records.addSamples(new Date(), 60_000, [[siteId, sample]]);
  const usage = { cpuNanoseconds: 1, memoryBytes: 1, memoryLimitBytes: 0, receivedBytes: 1, sentBytes: 1 };
  const databases = openRunningDatabases(engine, "a");
  const over = new AbortController();
  startSampling(
    {
      engine,
      ingress,
      records,
      intervalMs: 20,
      databases: databases.list,
      heldDatabases: databases.held,
      diskMb: () => null,
      read: () => usage,
    },
    over.signal,
  );
  const sampled = (count: number) =>
    vi.waitUntil(() => [...ids, "db"].every((id) => records.samples(id).length >= count), 10_000);
  await sampled(3);
  // Of a site whose place was lost, what is known stays.
  expect(records.samples(siteId)).toHaveLength(1);
  expect(asked.toSorted()).toEqual([...ids, "d", "databases"].toSorted());
  databases.changed();
  await vi.waitUntil(() => asked.length > 102, 10_000);
  await sampled(6);
  over.abort();
  expect(asked.slice(102)).toEqual(["databases"]);
});

it("a database that does not run keeps its metrics and events for as long as the host has its data", async () => {
  const labelled = (id: string) => ({ "berth.agent": "a", "berth.database": id });
  let volumes = [{ name: "data", labels: labelled("stopped"), folder: "" }];
  const containers = [{ id: "c", running: false, labels: labelled("crashed") }];
  const engine = {
    listContainers: () => Promise.resolve(containers),
    volumes: () => Promise.resolve(volumes),
  } as unknown as Engine;
  const ingress = { sites: () => [], lost: () => [] } as unknown as Ingress;
  const databases = openRunningDatabases(engine, "a");
  const twoHoursAgo = new Date(Date.now() - 2 * 3_600_000);
  const ids = ["stopped", "crashed"];
  records.addSamples(
    new Date(),
    60_000,
    ids.map((id) => [id, sample]),
  );
  for (const id of ids)
    records.addEvent(id, id, { at: twoHoursAgo.toISOString(), kind: "crash_loop", detail: "" });
  let rounds = 0;
  const keptOf = (id: string) => [records.samples(id).length, records.events(id).length];
  const over = new AbortController();
  onTestFinished(() => over.abort());
  startSampling(
    {
      engine,
      ingress,
      records: { ...records, keepOnly: (...of) => (records.keepOnly(...of), void rounds++) },
      intervalMs: 20,
      databases: databases.list,
      heldDatabases: databases.held,
      diskMb: () => null,
    },
    over.signal,
  );
  await vi.waitUntil(() => rounds > 1, 10_000);
  expect(ids.map(keptOf)).toEqual([
    [1, 1],
    [1, 1],
  ]);
  volumes = [];
  databases.changed();
  await vi.waitUntil(() => keptOf("stopped").every((left) => left === 0), 10_000);
  expect(keptOf("crashed")).toEqual([1, 1]);
});

it("the minute in which a new version began to serve has a sample, of what it used since its start", async () => {
  // By the age at which each is found, however late the round is.
  const ageMs: Record<string, number> = { new: 500, old: 3_600_000 };
  const engine = {
    inspectContainer: (id: string) =>
      Promise.resolve({
        running: true,
        pid: 7,
        labels: {},
        startedAt: new Date(Date.now() - (ageMs[id] ?? 0)),
      }),
  } as unknown as Engine;
  const ingress = {
    sites: () => ["new", "old"],
    lost: () => [],
    current: (id: string) => [{ containerId: id, address: "10.0.0.2", port: 3000 }],
  } as unknown as Ingress;
  const taken: { siteId: string; sample: object }[][] = [];
  const kept = {
    keepOnly: () => undefined,
    addSamples: (_at: Date, _ms: number, samples: [string, object][]) =>
      void taken.push(samples.map(([siteId, one]) => ({ siteId, sample: one }))),
  } as unknown as Records;
  const usage = {
    ...nothingUsed,
    cpuNanoseconds: 100e6,
    memoryBytes: 1024 * 1024,
    receivedBytes: 5,
    sentBytes: 6,
  };
  const over = new AbortController();
  const means = { engine, ingress, records: kept, intervalMs: 1000, read: () => usage };
  startSampling(
    {
      ...means,
      databases: () => Promise.resolve(new Map()),
      heldDatabases: () => Promise.resolve([]),
      diskMb: () => null,
    },
    over.signal,
  );
  await vi.waitUntil(() => taken.length > 0, 10_000);
  over.abort();
  expect(taken[0]).toEqual([
    {
      siteId: "new",
      sample: { cpuMilli: 100, memoryMb: 1, networkInBytes: 5, networkOutBytes: 6, diskMb: null },
    },
  ]);
});

it("a site whose memory stays near its limit for ten minutes is told, and a database's or one that falls below is not", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const near: string[] = [];
  let rounds = 0;
  const used: Record<string, () => number> = {
    high: () => 95,
    varies: () => (rounds % 5 === 0 ? 80 : 99),
    low: () => 89,
    data: () => 99,
  };
  const engine = {
    inspectContainer: () =>
      Promise.resolve({ running: true, pid: 7, startedAt: null, labels: { "berth.memory": "200" } }),
  } as unknown as Engine;
  const ingress = {
    sites: () => ["high", "varies", "low"],
    lost: () => [],
    current: (id: string) => [{ containerId: id, address: "10.0.0.2", port: 3000 }],
  } as unknown as Ingress;
  const toldAt: number[] = [];
  // Each round is a minute later.
  const kept = {
    keepOnly: () => (rounds++, vi.advanceTimersByTime(60_000)),
    addSamples: () => undefined,
  } as unknown as Records;
  const over = new AbortController();
  startSampling(
    {
      engine,
      ingress,
      records: kept,
      intervalMs: 10,
      databases: () => Promise.resolve(new Map([["db", "data"]])),
      heldDatabases: () => Promise.resolve(["db"]),
      diskMb: () => null,
      read: (id) => ({ ...nothingUsed, memoryBytes: (used[id]?.() ?? 0) * 1024 * 1024 }),
      onMemoryNear: (id, detail) => (toldAt.push(rounds), near.push(`${id} ${detail}`)),
    },
    over.signal,
  );
  await vi.waitUntil(() => rounds >= 15, 10_000);
  over.abort();
  // The first round is minute 1.
  expect(toldAt.slice(0, 2)).toEqual([11, 12]);
  for (const one of near) expect(one).toMatch(/^high .*95 MB of 100 MB/);
});
const nothingUsed = {
  cpuNanoseconds: 0,
  memoryBytes: 0,
  memoryLimitBytes: 100 * 1024 * 1024,
  receivedBytes: 0,
  sentBytes: 0,
};

it("what is near a limit is told once an hour for each resource and limit", () => {
  let now = 0;
  const told: string[] = [];
  const warnings = new LimitWarnings(
    ({ resourceId, of }) => told.push(`${of} ${resourceId}`),
    () => now,
  );
  const other = formatId("site", 2, new Uint8Array(10));
  const tell = (resourceId: typeof siteId, of: "memory" | "disk") =>
    warnings.tell({ resourceId, of, detail: "Near." });
  for (let count = 0; count < 3; count++) tell(siteId, "memory");
  tell(siteId, "disk");
  tell(other, "memory");
  now = 3_599_999;
  tell(siteId, "memory");
  expect(told).toEqual([`memory ${siteId}`, `disk ${siteId}`, `memory ${other}`]);
  now = 3_600_000;
  tell(siteId, "memory");
  expect(told).toHaveLength(4);
});

/** An engine and an ingress that do what is asked of them, and say so. */
function world(ids = ["c1"], policy = "") {
  const targets = (list: string[]): Target[] =>
    list.map((containerId, index) => ({ containerId, address: `10.0.0.${index + 2}`, port: 3000 }));
  let served: readonly Target[] | "parked" | null = targets(ids);
  let emit: (event: ContainerEvent) => void = () => undefined;
  const done: string[] = [];
  const engine = {
    watchContainers: (_labels: unknown, _signal: unknown, watcher: { onEvent: typeof emit }) => {
      emit = watcher.onEvent;
    },
    inspectContainer: () =>
      Promise.resolve({ env: ["KEY=hunter22"], labels: { "berth.secrets": "KEY" }, memoryMb: 256 }),
    lastLines: () => Promise.resolve(["the key is hunter22"]),
    listContainers: () => Promise.resolve(ids.map((id) => ({ id, name: id, labels: {}, running: true }))),
    stopContainer: (id: string) => Promise.resolve(void done.push(`stop ${id}`)),
    startContainer: (id: string) => Promise.resolve(void done.push(`start ${id}`)),
  } as unknown as Engine;
  const before: Target[] = [];
  const ingress = {
    current: () => served,
    fallback: () => (before.length > 0 ? before : null),
    withdraw: (_site: string, containerId: string) => {
      const serves =
        served !== null && served !== "parked" && served.some((one) => one.containerId === containerId);
      if (serves) served = before.length > 0 ? before : "parked";
      return Promise.resolve(void done.push("withdraw"));
    },
  } as unknown as Ingress;
  return {
    engine,
    ingress,
    done,
    /** What serves is on probation, and these served before it. */
    tries: (ids: string[]) => void before.push(...targets(ids)),
    serve: (now: string[] | "parked") => (served = now === "parked" ? now : targets(now)),
    emit: (
      action: ContainerEvent["action"],
      seconds: number,
      exitCode: number | null = null,
      containerId = "c1",
    ) =>
      emit({
        action,
        containerId,
        time: `${1_767_225_600 + seconds}.000000000`,
        labels: {
          "berth.site": siteId,
          "berth.deployment": deploymentId,
          // It was made with more than it has now.
          "berth.memory": "512",
          "berth.replica": containerId.slice(1),
          "berth.restart": policy,
          "berth.replicas": String(ids.length),
        },
        exitCode,
      }),
  };
}

function watch(
  on: Pick<ReturnType<typeof world>, "engine" | "ingress">,
  onCrash: (crash: Crash) => void = () => undefined,
  onDatabaseOut: (crash: DatabaseCrash) => void = () => undefined,
  onOutOfMemory: (id: string, detail: string) => void = () => undefined,
): void {
  const nothing = () => undefined;
  watchSites(
    {
      ...on,
      records,
      agentId: "a",
      out: new Set(),
      onStart: nothing,
      onEnd: nothing,
      onConnect: nothing,
      onCrash,
      onDatabaseOut,
      onOutOfMemory,
      databaseExits: databaseExits(on.engine),
    },
    new AbortController().signal,
  );
}

/** Nothing here waits for more than promises. */
const settle = async () => {
  for (let turns = 0; turns < 50; turns++) await new Promise((resolve) => setImmediate(resolve));
};
const kinds = () => records.events(siteId).map(({ kind }) => kind);

describe("what happens to a container", () => {
  it("is told apart: asked to end or not, started by us or by Docker, out of memory", async () => {
    const on = world();
    watch(on);
    on.emit("start", 1);
    on.emit("oom", 2);
    on.emit("die", 3, 137);
    on.emit("start", 4);
    on.emit("kill", 5);
    on.emit("die", 6, 143);
    on.emit("start", 7);
    // Said again by the engine after it was asked again.
    on.emit("start", 7);
    await settle();
    expect(kinds()).toEqual(["start", "oom", "exit", "restart", "stop", "start"]);
    expect(records.events(siteId)[1]?.detail).toContain("256 MB");
    expect(records.eventsUpTo()).toBe("1767225607.000000000");
  });

  it("is taken in also where the engine's events come in another order, or the host's clock was set back", async () => {
    records.takenIn(`${1_767_225_600 + 86_400}.000000000`);
    const on = world();
    watch(on);
    on.emit("start", 2);
    on.emit("die", 1, 1);
    // Both said again by the engine after it was asked again.
    on.emit("die", 1, 1);
    on.emit("start", 2);
    await settle();
    expect(kinds()).toEqual(["start", "exit"]);
  });

  it("that is out of memory again and again is told once, and again when it goes on", async () => {
    const on = world();
    watch(on);
    for (let at = 1; at <= 15; at++) on.emit("oom", at);
    await settle();
    expect(records.events(siteId).map(({ at }) => at.slice(17, 19))).toEqual(["01", "11"]);
    expect(kinds()).toEqual(["oom", "oom"]);
  });

  it("that serves and is out of memory is told to its owner", async () => {
    const on = world();
    const told: unknown[] = [];
    watch(on, undefined, undefined, (id, detail) => told.push([id, detail]));
    on.emit("oom", 1);
    on.emit("oom", 2, null, "another");
    await settle();
    expect(told).toEqual([[siteId, expect.stringContaining("256 MB")]]);
  });

  it("five exits in a minute end the service, once, with the reason and the last lines without secrets", async () => {
    const on = world();
    const crashes: Crash[] = [];
    watch(on, (one) => crashes.push(one));
    for (const at of [0, 50, 61, 70, 80]) on.emit("die", at, 1);
    await settle();
    expect(on.done).toEqual([]);
    for (const at of [90, 91]) on.emit("die", at, 1);
    await settle();
    expect(on.done).toEqual(["withdraw", "stop c1"]);
    expect(crashes).toHaveLength(1);
    expect(crashes[0]?.error).toMatch(/exited 5 times .* code 1.*the key is •••$/);
    expect(kinds().filter((kind) => kind === "crash_loop")).toHaveLength(1);
  });

  it("five exits for want of memory say what to do, and that a larger pack starts it again", async () => {
    const on = world();
    const crashes: Crash[] = [];
    watch(on, (one) => crashes.push(one));
    on.emit("oom", 0);
    for (const at of [0, 1, 2, 3, 4]) on.emit("die", at, 137);
    await settle();
    expect(crashes[0]?.error).toMatch(
      /256 MB\).*choose a larger pack\. Once its pack is larger, it starts again by itself\./,
    );
  });

  it("that keeps exiting in its probation, while nobody looks after it, makes way for what served before it", async () => {
    const on = world();
    on.tries(["old"]);
    const crashes: Crash[] = [];
    watch(on, (crash) => crashes.push(crash));
    for (let at = 1; at <= 5; at++) on.emit("die", at, 1);
    await settle();
    expect(on.done).toEqual(["withdraw", "stop c1", "start old"]);
    expect([crashes, records.crashes()]).toEqual([[], []]);
  });

  it("ten short lives in a row end the service as well, however slowly they follow each other", async () => {
    const on = world();
    const crashes: Crash[] = [];
    watch(on, (one) => crashes.push(one));
    let now = 0;
    const live = (seconds: number) => {
      on.emit("start", ++now);
      on.emit("die", (now += seconds), 1);
    };
    for (let count = 0; count < 30; count++) live(61);
    for (let count = 0; count < 9; count++) live(30);
    live(61);
    for (let count = 0; count < 9; count++) live(30);
    await settle();
    expect([on.done, crashes]).toEqual([[], []]);
    live(30);
    await settle();
    expect(on.done).toEqual(["withdraw", "stop c1"]);
    expect(crashes[0]?.error).toMatch(
      /exited 10 times in a row, each within a minute of its start, .* code 1/,
    );
  });

  it.each([
    ["never", 0, true],
    ["never", 1, true],
    ["on-failure", 0, true],
    ["on-failure", 1, false],
    ["always", 0, false],
  ])("with the restart policy %s, one exit with code %s ends the service: %s", async (policy, code, ends) => {
    const on = world(["c1"], policy);
    const crashes: Crash[] = [];
    watch(on, (one) => crashes.push(one));
    on.emit("die", 1, code);
    await settle();
    expect(on.done).toEqual(ends ? ["withdraw", "stop c1"] : []);
    expect(crashes.map(({ error }) => error)).toEqual(
      ends
        ? [
            expect.stringMatching(
              `^The app exited with code ${code}, and its restart policy \\(${policy}\\) does not start it again. Start or deploy it`,
            ),
          ]
        : [],
    );
    expect(kinds()).toEqual(ends ? ["exit", "stop"] : ["exit"]);
  });

  it("a replica that its restart policy does not start again is no crash loop while the others serve", async () => {
    const on = world(["c1", "c2"], "on-failure");
    watch(on);
    on.emit("die", 1, 0, "c2");
    await settle();
    expect(on.done).toEqual(["stop c2"]);
    expect(kinds()).toEqual(["exit", "stop"]);
    expect(records.events(siteId).at(-1)?.detail).toBe(
      "Replica 2 exited with code 0, and its restart policy (on-failure) does not start it again. The site's other replicas keep serving; a restart starts all of them again.",
    );
  });

  it("stops and exits of a container that does not serve are no crash loop", async () => {
    const on = world();
    watch(on);
    for (const at of [1, 3, 5, 7, 9, 11]) {
      on.emit("kill", at);
      on.emit("die", at + 1, 0);
    }
    on.serve(["c2"]);
    for (const at of [21, 22, 23, 24, 25, 26]) on.emit("die", at, 1);
    await settle();
    expect(on.done).toEqual([]);
  });

  it("one replica that keeps exiting is stopped while the others serve; the last one ends the service", async () => {
    const on = world(["c1", "c2"]);
    const crashes: Crash[] = [];
    watch(on, (one) => crashes.push(one));
    for (const at of [1, 2, 3, 4, 5]) on.emit("die", at, 1, "c2");
    await settle();
    expect([on.done, crashes]).toEqual([["stop c2"], []]);
    expect(records.events(siteId).at(-1)?.detail).toMatch(
      /^Replica 2 exited 5 times .* other replicas keep serving/,
    );
    for (const at of [11, 12, 13, 14, 15]) on.emit("die", at, 1);
    await settle();
    expect(on.done).toEqual(["stop c2", "withdraw", "stop c1", "stop c2"]);
    expect(crashes).toHaveLength(1);
  });

  it("a replica that was started again after its loop counts as one that serves", async () => {
    const on = world(["c1", "c2"]);
    const crashes: Crash[] = [];
    watch(on, (one) => crashes.push(one));
    for (const at of [1, 2, 3, 4, 5]) on.emit("die", at, 1, "c2");
    on.emit("start", 8, null, "c2");
    for (const at of [11, 12, 13, 14, 15]) on.emit("die", at, 1);
    await settle();
    expect([on.done, crashes]).toEqual([["stop c2", "stop c1"], []]);
  });

  it("a crash that the agent did not end is ended by the next one", async () => {
    const on = world();
    records.addCrash({ crash, containerId: "c1", isOut: false });
    watch(on);
    await settle();
    expect(on.done).toEqual(["withdraw", "stop c1"]);
  });
});

/** Of a world, and of nothing that questions about it do not need. `held`: the last measured sizes of its databases. */
const questionServerOf = (
  on: Pick<Means, "engine" | "ingress">,
  held: ReturnType<Means["diskUse"]["databases"]> = [],
): QuestionServer =>
  new QuestionServer({
    requests: noneRequested,
    ...on,
    kept: noneKept,
    inspectSource: noSources,
    certificate: () => Promise.reject(new Error("no ingress")),
    diskFreeMb: () => Promise.resolve(null),
    machine: () => Promise.reject(new Error("no machine")),
    imageRepository: String,
    records,
    agentId: "a",
    inspect: () => Promise.reject(new Error("no database")),
    diskUse: { soon: () => Promise.resolve(null), databases: () => held },
    onStart: () => undefined,
  });

const deskOf = (on: ReturnType<typeof world>) => {
  const questionServer = questionServerOf(on);
  const sent: FromAgent[] = [];
  return {
    questionServer,
    sent,
    connect: () => questionServer.connected((message) => sent.push(message) > 0),
  };
};

it("what is near a limit while the link is down is told at the next connection, once", () => {
  const { questionServer, sent, connect } = deskOf(world());
  const near = (of: "memory" | "disk", detail: string) =>
    questionServer.limitNear({ resourceId: siteId, of, detail });
  near("memory", "Near.");
  near("disk", "Near.");
  near("memory", "Nearer.");
  connect();
  near("disk", "Full.");
  questionServer.disconnected();
  connect();
  questionServer.disconnected();
  const told = sent.map((message) => message.type === "limitNear" && `${message.of}: ${message.detail}`);
  expect(told).toEqual(["memory: Nearer.", "disk: Near.", "disk: Full."]);
});

it("which checks fail is told at each connection, once they were asked", () => {
  const { questionServer, sent, connect } = deskOf(world());
  connect();
  questionServer.disconnected();
  expect(sent).toEqual([]);
  const sites = [{ siteId, detail: "It answers 500." }];
  questionServer.checked(sites);
  connect();
  questionServer.disconnected();
  expect(sent).toEqual([{ type: "failingChecks", sites }]);
});

describe("a crash", () => {
  it("is reported at every connection until it is known", () => {
    const on = world();
    on.serve("parked");
    records.addCrash({ crash, containerId: "c1", isOut: true });
    const { questionServer, sent, connect } = deskOf(on);
    connect();
    questionServer.disconnected();
    connect();
    questionServer.disconnected();
    questionServer.receive({ type: "crashAck", siteId, deploymentId });
    connect();
    questionServer.disconnected();
    expect(sent).toEqual([crash, crash]);
  });

  it("is not reported once the site serves again", () => {
    const on = world();
    records.addCrash({ crash, containerId: "c1", isOut: true });
    const { questionServer, sent, connect } = deskOf(on);
    connect();
    questionServer.disconnected();
    expect([sent, records.crashes()]).toEqual([[], []]);
  });

  it("is reported again, and ends nothing, while the disk is too full to note that it is known", () => {
    const on = world();
    on.serve("parked");
    records.addCrash({ crash, containerId: "c1", isOut: true });
    const { questionServer, sent, connect } = deskOf(on);
    const other = new DatabaseSync(join(folder, "running.db"));
    onTestFinished(() => other.close());
    other.exec("BEGIN IMMEDIATE");
    connect();
    questionServer.receive({ type: "crashAck", siteId, deploymentId });
    questionServer.disconnected();
    on.serve(["c1"]);
    connect();
    questionServer.disconnected();
    other.exec("ROLLBACK");
    on.serve("parked");
    connect();
    questionServer.disconnected();
    expect(sent).toEqual([crash, crash]);
  });

  it("answers questions while its link is there, and none after", async () => {
    const { questionServer, sent, connect } = deskOf(world());
    connect();
    questionServer.receive({ type: "ask", requestId: "r", question: { kind: "events", siteId } });
    await settle();
    expect(sent).toEqual([
      { type: "answer", requestId: "r", answer: { kind: "events", events: [] }, last: true },
    ]);
    questionServer.disconnected();
  });
});

describe("a database's server that keeps exiting", () => {
  const databaseId = formatId("database", 1, new Uint8Array(10));

  /** A host with that one database. */
  function databaseWorld(lines = ["invalid checkpoint record", "the key is hunter22"]) {
    let container: { id: string; running: boolean; startedAt: Date } | null = {
      id: "d1",
      running: true,
      startedAt: new Date(0),
    };
    let emit: (event: ContainerEvent) => void = () => undefined;
    const done: string[] = [];
    const env = ["POSTGRES_PASSWORD=hunter22"];
    const engine = {
      watchContainers: (_labels: unknown, _signal: unknown, watcher: { onEvent: typeof emit }) => {
        emit = watcher.onEvent;
      },
      inspectContainer: () =>
        Promise.resolve(
          container && { ...container, env, labels: { "berth.database": databaseId }, memoryMb: 256 },
        ),
      lastLines: () => Promise.resolve(lines),
      stopContainer: (id: string) => {
        if (container) container.running = false;
        return Promise.resolve(void done.push(`stop ${id}`));
      },
    } as unknown as Engine;
    return {
      engine,
      ingress: { current: () => null } as unknown as Ingress,
      done,
      is: (now: typeof container) => (container = now),
      crashes: () => databaseCrashes({ engine, records }),
      stillOut: async () => [...(await databasesStillOut({ engine, records }))],
      emit: (action: ContainerEvent["action"], seconds: number, exitCode: number | null = null) =>
        emit({
          action,
          containerId: "d1",
          time: `${1_767_225_600 + seconds}.000000000`,
          labels: { "berth.database": databaseId },
          exitCode,
        }),
    };
  }
  const loop = (on: ReturnType<typeof databaseWorld>) => {
    for (const at of [1, 2, 3, 4, 5]) on.emit("die", at, 1);
    return settle();
  };

  it("is stopped once, with an event, the reason and its last lines without the password", async () => {
    const on = databaseWorld();
    const crashes: DatabaseCrash[] = [];
    watch(on, undefined, (crash) => crashes.push(crash));
    for (const at of [1, 2, 3, 4]) on.emit("die", at, 1);
    await settle();
    expect(on.done).toEqual([]);
    await loop(on);
    expect(on.done).toEqual(["stop d1"]);
    expect(crashes).toHaveLength(1);
    expect(crashes[0]).toMatchObject({ databaseId, error: expect.not.stringContaining("hunter22") });
    expect(crashes[0]?.error).toMatch(/^The database's server exited 5 times .* code 1.* invalid checkpoint/);
    expect(records.events(databaseId).at(-1)).toMatchObject({ kind: "crash_loop" });
  });

  it("is told why: the host's disk was full, or its memory was too little", async () => {
    const says = async (on: ReturnType<typeof databaseWorld>) => {
      await loop(on);
      return records.events(databaseId).at(-1)?.detail;
    };
    const full = databaseWorld(["PANIC: could not write to file: No space left on device"]);
    watch(full);
    expect(await says(full)).toMatch(/host's disk is full: ask the operator/);
    records.close();
    records = openRecords(join(folder, "another.db"));
    const small = databaseWorld();
    watch(small);
    small.emit("oom", 0);
    expect(await says(small)).toMatch(
      /more memory than its pack has \(256 MB\).*choose a larger pack\. Once its pack is larger, it starts again by itself\./,
    );
  });

  it("is reported until that is known, and not any more once it was started or is gone", async () => {
    const on = databaseWorld();
    watch(on);
    await loop(on);
    const [crash] = await on.crashes();
    expect(crash).toMatchObject({ type: "databaseCrashed", databaseId });
    expect(await on.crashes()).toEqual([crash]);
    const questionServer = questionServerOf(on);
    questionServer.receive({ type: "databaseCrashAck", databaseId, at: new Date(0).toISOString() });
    expect(await on.crashes()).toEqual([crash]);
    questionServer.receive({ type: "databaseCrashAck", databaseId, at: crash?.at ?? "" });
    expect(await on.crashes()).toEqual([]);
    for (const next of [
      { id: "d1", running: true, startedAt: new Date(Date.now() + 1000) },
      { id: "d1", running: false, startedAt: new Date(Date.now() + 1000) },
      { id: "d2", running: false, startedAt: new Date(0) },
      null,
    ]) {
      on.is({ id: "d1", running: true, startedAt: new Date(0) });
      await loop(on);
      on.is(next);
      expect([next, await on.crashes()]).toEqual([next, []]);
    }
  });

  it("is reported, and what databases hold is told, at every connection", async () => {
    const on = databaseWorld();
    watch(on);
    await loop(on);
    const held = { databaseId, usedMb: 7 };
    const questionServer = questionServerOf(on, [held]);
    const sent: string[] = [];
    for (let connection = 0; connection < 2; connection++) {
      questionServer.connected(({ type }) => sent.push(type) > 0);
      await settle();
      questionServer.disconnected();
    }
    const all = ["diskUse", "databaseCrashed"];
    expect(sent).toEqual([...all, ...all]);
  });

  it("stays out when the agent begins anew, and is taken out where that was not done", async () => {
    const on = databaseWorld();
    watch(on);
    await loop(on);
    const [crash] = await on.crashes();
    questionServerOf(on).receive({ type: "databaseCrashAck", databaseId, at: crash?.at ?? "" });
    expect(await on.stillOut()).toEqual([databaseId]);
    if (crash) records.addDatabaseOut({ crash, containerId: "d1", isOut: false, isKnown: false });
    expect([await on.stillOut(), await on.crashes()]).toEqual([[databaseId], []]);
    on.done.length = 0;
    watch(on);
    await settle();
    expect([on.done, (await on.crashes()).length]).toEqual([["stop d1"], 1]);
    on.is({ id: "d1", running: true, startedAt: new Date(Date.now() + 1000) });
    expect(await on.stillOut()).toEqual([]);
  });
});
