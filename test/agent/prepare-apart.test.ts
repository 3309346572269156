import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setInterval as every } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { prepareApart } from "../../agent/image-build/prepare-apart.ts";
import { prepareBuild, type Input, type Prepared } from "../../agent/image-build/prepare.ts";
import { Readers, type ReaderLimits } from "../../agent/image-build/readers.ts";
import { sendingStream } from "../../agent/docker/send-files.ts";
import { JobError } from "../../agent/job.ts";
import { bundleNode } from "../../scripts/lib/bundle.ts";
import { received, textsOf, type Received } from "../support/received.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let root: string;
let folder: string;
let over: AbortController;
beforeEach(() => {
  root = temporaryFolder();
  folder = join(root, "repository");
  mkdirSync(folder);
  over = new AbortController();
});
afterEach(() => over.abort());
function write(name: string, content: string): void {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), content);
}

const input: Input = {
  siteId: "site",
  rootDir: null,
  dockerfilePath: null,
  buildCommand: null,
  startCommand: null,
  env: [
    { key: "TOKEN", value: "a\n", scope: "both", secret: true },
    { key: "API", value: "b", scope: "build", secret: false },
  ],
};
const readersOf = (limits: Partial<ReaderLimits> = {}, forMs?: number) =>
  new Readers(join(root, "readers"), limits, forMs);
const apart = (
  limits: Partial<ReaderLimits> = {},
  canHave = (_image: string) => Promise.resolve(false),
  signal = over.signal,
  fetched?: Promise<unknown>,
  from = readersOf(limits),
  accountId = "acc_1",
) =>
  prepareApart(
    from,
    { accountId, folder, input, buildCaFile: null, fileTimes: join(root, "times.json") },
    canHave,
    signal,
    undefined,
    fetched,
  );

const receivedOf = async ({ context }: Prepared): Promise<Received[]> => {
  if (!context) throw new Error("There is no context");
  return received(context.send());
};
const sent = async (prepared: Prepared): Promise<Map<string, string>> => textsOf(await receivedOf(prepared));

/** For each path, every rule of it is compared to the path's end. */
const slowToCompare = "*?b\n".repeat(8000);

describe("a repository read in a process of its own", () => {
  it("is the build that it is otherwise, of any size", async () => {
    write("package.json", JSON.stringify({ scripts: { start: "node server.js" }, engines: { node: "20" } }));
    for (let number = 0; number < 300; number++) write(`files/${number}`, String(number).repeat(5000));
    const asked: string[] = [];
    const has = (image: string) => Promise.resolve(asked.push(image) > 0);
    const prepared = await apart({}, has);
    const { context, ...other } = await prepareBuild(folder, input, null, has);
    expect(prepared).toEqual({ ...other, context: prepared.context });
    expect(asked).toEqual(["node:20-bookworm-slim", "node:20-bookworm-slim"]);
    const expected = textsOf(await received(sendingStream(context())));
    // BuildKit may ask more than once, and at once.
    expect(await Promise.all([sent(prepared), sent(prepared)])).toEqual([expected, expected]);
  });

  it("gives a file that is as it was the time that it had, fetched anew, and one that is not another", async () => {
    const times = async () => {
      const all = await receivedOf(await apart());
      return Object.fromEntries(all.map(({ path, modTime }) => [path, modTime / 1e9]));
    };
    const fetched = (name: string, content: string, seconds: number) => {
      write(name, content);
      utimesSync(join(folder, name), seconds, seconds);
    };
    const files = ["Dockerfile", "same", "changed", "new"] as const;
    for (const name of files.slice(0, 3)) fetched(name, `FROM scratch\n# ${name}`, 1000);
    expect(await times()).toEqual({ Dockerfile: 1000, same: 1000, changed: 1000 });
    for (const name of files) fetched(name, `FROM scratch\n# ${name}`, 2000);
    fetched("changed", "FROM scratch\n# CHANGED", 2000);
    expect(await times()).toEqual({ Dockerfile: 1000, same: 1000, changed: 2000, new: 2000 });
    // What it was before may be anywhere in a cache, with that time.
    fetched("changed", "FROM scratch\n# changed", 3000);
    expect(await times()).toEqual({ Dockerfile: 1000, same: 1000, changed: 3000, new: 2000 });
    writeFileSync(join(root, "times.json"), '{"');
    for (const name of files) fetched(name, `FROM scratch\n# ${name}`, 4000);
    expect(await times()).toEqual({ Dockerfile: 4000, same: 4000, changed: 4000, new: 4000 });
  });

  it("says what is wrong with it to its owner", async () => {
    write("package.json", "{");
    await expect(apart()).rejects.toThrow(
      new JobError("package.json is not valid JSON: correct it and deploy again."),
    );
  });

  it("leaves the agent free while it computes, and is ended with a reason when that takes too long", async () => {
    write("Dockerfile", "FROM scratch\n");
    write(".dockerignore", slowToCompare);
    for (let number = 0; number < 200; number++) write(`${"a".repeat(240)}${number}`, "");
    const prepared = await apart({ cpuSeconds: 2 });
    const failed = sent(prepared).catch((error: unknown) => error);
    let answered = 0;
    const ended = new AbortController();
    void failed.finally(() => ended.abort());
    try {
      for await (const _ of every(20, undefined, { signal: ended.signal })) answered++;
    } catch {
      // It is over.
    }
    const error = await failed;
    expect(error).toBeInstanceOf(JobError);
    expect((error as JobError).message).toMatch(
      /took more than 2 seconds of CPU time .*\.dockerignore simpler/,
    );
    expect(prepared.context?.failed.reason).toBe(error);
    expect(answered).toBeGreaterThan(3);
  });

  it("is ended with a reason when it takes too much memory", async () => {
    write("package.json", `{"a":[${"[],".repeat(290_000)}[]]}`);
    await expect(apart({ memoryMb: 8 })).rejects.toThrow(/took more than 8 MB of memory/);
  });

  it("begins once the repository was fetched, and ends with what that failed for", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const prepared = apart({}, undefined, undefined, promise);
    // A reader that does not wait has read the empty folder by the time that another one is done.
    await expect(apart()).rejects.toBeInstanceOf(JobError);
    write("Dockerfile", "FROM scratch\n");
    resolve();
    expect((await prepared).dockerfile).toEqual({ name: "Dockerfile", text: "FROM scratch\n" });

    const refusal = new JobError("The repository needs a token.");
    await expect(apart({}, undefined, undefined, Promise.reject(refusal))).rejects.toBe(refusal);
  });

  it("ends with the job, while it waits and while it is handed over", async () => {
    write("package.json", JSON.stringify({ scripts: { start: "node server.js" }, engines: { node: "20" } }));
    const cancel = new AbortController();
    const waiting = apart({}, () => new Promise(() => cancel.abort(new Error("Cancelled"))), cancel.signal);
    await expect(waiting).rejects.toThrow("Cancelled");

    write("large", "a".repeat(5_000_000));
    const again = new AbortController();
    const prepared = await apart({}, undefined, again.signal);
    const sending = sent(prepared);
    again.abort(new Error("Cancelled"));
    await expect(sending).rejects.toThrow("Cancelled");
    await expect(sent(prepared)).rejects.toThrow("Cancelled");
  });
});

describe("a process that has read a repository", () => {
  const using = (from: Readers, signal?: AbortSignal) => apart(undefined, undefined, signal, undefined, from);
  const freeOf = (from: Readers, account = "acc_1") => from.freeFor(account)?.pid;

  it("reads the next one of its account as a new one would, once the build is done", async () => {
    const from = readersOf();
    write("Dockerfile", "FROM scratch\n");
    write("first", "1".repeat(5_000_000));
    const first = await using(from);
    // BuildKit may leave off before it has all, and say so late.
    const sending = first.context?.send();
    sending?.read();
    first.context?.done();
    expect(freeOf(from)).toBeUndefined();
    await expect.poll(() => freeOf(from)).toBeDefined();
    const pid = freeOf(from);

    rmSync(join(folder, "first"));
    write("Dockerfile", "FROM busybox\n");
    write("second", "2");
    const reading = using(from);
    sending?.write("late");
    sending?.read();
    const second = await reading;
    expect(second.dockerfile.text).toBe("FROM busybox\n");
    expect([...(await sent(second)).keys()]).toEqual(["Dockerfile", "second"]);
    second.context?.done();
    await expect.poll(() => freeOf(from)).toBe(pid);

    rmSync(join(folder, "Dockerfile"));
    await expect(using(from)).rejects.toBeInstanceOf(JobError);
    expect(freeOf(from)).toBeUndefined();
  });

  it("is ended with a build that is not done", async () => {
    const from = readersOf();
    write("Dockerfile", "FROM scratch\n");
    const cancel = new AbortController();
    const prepared = await using(from, cancel.signal);
    cancel.abort(new Error("Cancelled"));
    prepared.context?.done();
    const next = await using(from);
    expect(next.dockerfile.text).toBe("FROM scratch\n");
    next.context?.done();
    await expect.poll(() => freeOf(from)).toBeDefined();
  });

  it("is for no other account, and waits for a while only, with two others at most", async () => {
    const from = readersOf({}, 10_000);
    const accounts = ["acc_1", "acc_2", "acc_3", "acc_4"];
    write("Dockerfile", "FROM scratch\n");
    const free = () => accounts.map((account) => freeOf(from, account));
    const used: ChildProcess[] = [];
    for (const account of accounts) {
      const { context } = await apart(undefined, undefined, undefined, undefined, from, account);
      context?.done();
      await expect.poll(() => freeOf(from, account)).toBeDefined();
      used.push(...[from.freeFor(account)].filter((reader) => reader !== undefined));
    }
    expect(new Set(used.map(({ pid }) => pid)).size).toBe(4);
    expect(free()).toEqual([undefined, ...used.slice(1).map(({ pid }) => pid)]);
    const last = from.take("acc_4");
    expect(last).toBe(used[3]);
    const ends = () => used.map(({ signalCode }) => signalCode);
    await expect.poll(ends).toEqual(["SIGKILL", "SIGKILL", "SIGKILL", null]);
    expect(free()).toEqual(accounts.map(() => undefined));
    last.kill("SIGKILL");
  });

  it("is ended in place of waiting where it has taken a third of the time that one repository may take", async () => {
    write("Dockerfile", "FROM scratch\n");
    write(".dockerignore", slowToCompare);
    for (let number = 0; number < 8; number++) write(`${"a".repeat(240)}${number}`, "");
    const readOnce = async (from: Readers): Promise<ChildProcess> => {
      const take = vi.spyOn(from, "take");
      const prepared = await using(from);
      await sent(prepared);
      prepared.context?.done();
      return take.mock.results[0]?.value as ChildProcess;
    };
    // Machines differ in how long that takes, and one machine by half from one time to the next.
    const unbounded = await readOnce(readersOf({ cpuSeconds: 600 }));
    const [{ cpuSeconds }] = (await once(unbounded, "message")) as [{ cpuSeconds: number }];
    const from = readersOf({ cpuSeconds: Math.ceil(1.5 * cpuSeconds) });
    const reader = await readOnce(from);
    await expect.poll(() => reader.signalCode).toBe("SIGKILL");
    expect(freeOf(from)).toBeUndefined();
  });
});

it("the one file that hosts are served has the program of the readers in it", async () => {
  const served = join(root, "agent.mjs");
  await bundleNode("agent/image-build/readers.ts", served);
  write("Dockerfile", "FROM scratch\n");
  const { Readers: AsServed } = (await import(served)) as { Readers: typeof Readers };
  // As an agent of another version left it.
  const directory = join(root, "as-served");
  mkdirSync(directory);
  writeFileSync(join(directory, "reader.cjs"), "process.exit(1)");
  const from = new AsServed(directory);
  for (const _ of [1, 2]) {
    const prepared = await apart(undefined, undefined, undefined, undefined, from);
    expect(prepared.dockerfile.name).toBe("Dockerfile");
    expect(await sent(prepared)).toEqual(new Map([["Dockerfile", "FROM scratch\n"]]));
  }
});
