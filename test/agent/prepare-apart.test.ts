import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setInterval as every } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { prepareApart } from "../../agent/image-build/prepare-apart.ts";
import { prepareBuild, type Input, type Prepared } from "../../agent/image-build/prepare.ts";
import { Threads, type threadLimits } from "../../agent/image-build/threads.ts";
import { sendingStream } from "../../agent/docker/send-files.ts";
import { JobError } from "../../agent/job.ts";
import { bundleNode } from "../../scripts/lib/bundle.ts";
import { received, textsOf, type Received } from "../support/received.ts";

let root: string;
let folder: string;
let over: AbortController;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "prepare-apart-"));
  folder = join(root, "repository");
  mkdirSync(folder);
  over = new AbortController();
});
afterEach(() => {
  over.abort();
  rmSync(root, { recursive: true });
});
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
const apart = (
  limits: Partial<typeof threadLimits> = {},
  canHave = (_image: string) => Promise.resolve(false),
  signal = over.signal,
  fetched?: Promise<unknown>,
  threads = new Threads(limits),
) =>
  prepareApart(
    { accountId: "acc_1", folder, input, buildCaFile: null, fileTimes: join(root, "times.json") },
    canHave,
    signal,
    threads,
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

describe("a repository read in a thread of its own", () => {
  it("is the build that it is otherwise, of any size", async () => {
    write("package.json", JSON.stringify({ scripts: { start: "node server.js" }, engines: { node: "20" } }));
    for (let number = 0; number < 300; number++) write(`files/${number}`, String(number).repeat(5000));
    const asked: string[] = [];
    const has = (image: string) => Promise.resolve(asked.push(image) > 0);
    const prepared = await apart({}, has);
    const { context, ...other } = await prepareBuild(folder, input, null, has);
    expect(prepared).toEqual({
      ...other,
      secrets: new Map([...other.secrets].map(([id, bytes]) => [id, new Uint8Array(bytes)])),
      context: prepared.context,
    });
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
      new JobError("package.json is not valid JSON: mend it and deploy again."),
    );
  });

  it("leaves the agent free while it computes, and is ended with a reason when that takes too long", async () => {
    write("Dockerfile", "FROM scratch\n");
    write(".dockerignore", slowToCompare);
    for (let number = 0; number < 200; number++) write(`${"a".repeat(240)}${number}`, "");
    const prepared = await apart({ busyMs: 4000 });
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
      /took more than 4 seconds of computing .*\.dockerignore simpler/,
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
    // A thread that does not wait has read the empty folder by the time that another one is done.
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

describe("a thread that has read a repository", () => {
  const using = (threads: Threads, signal?: AbortSignal) =>
    apart(undefined, undefined, signal, undefined, threads);

  it("reads the next one of its account as a new one would, once the build is done", async () => {
    const threads = new Threads();
    write("Dockerfile", "FROM scratch\n");
    write("first", "1");
    const first = await using(threads);
    // BuildKit may leave off before it has all.
    first.context?.send().read();
    first.context?.done();
    const thread = threads.take("acc_1");
    const { threadId } = thread;
    threads.keep("acc_1", thread);

    rmSync(join(folder, "first"));
    write("Dockerfile", "FROM busybox\n");
    write("second", "2");
    const second = await using(threads);
    expect(second.dockerfile.text).toBe("FROM busybox\n");
    expect([...(await sent(second)).keys()]).toEqual(["Dockerfile", "second"]);
    second.context?.done();
    expect(threads.take("acc_1").threadId).toBe(threadId);

    rmSync(join(folder, "Dockerfile"));
    await expect(using(threads)).rejects.toBeInstanceOf(JobError);
  });

  it("is ended with a build that is not done", async () => {
    const threads = new Threads();
    write("Dockerfile", "FROM scratch\n");
    const cancel = new AbortController();
    const prepared = await using(threads, cancel.signal);
    cancel.abort(new Error("Cancelled"));
    prepared.context?.done();
    const thread = threads.take("acc_1");
    threads.keep("acc_1", thread);
    expect((await using(threads)).dockerfile.text).toBe("FROM scratch\n");
  });

  it("is for no other account, and waits for a while only, with two others at most", async () => {
    const threads = new Threads({}, 200);
    const accounts = ["acc_1", "acc_2", "acc_3", "acc_4"];
    const all = accounts.map((account) => threads.take(account));
    expect(new Set(all).size).toBe(4);
    for (const [index, thread] of all.entries()) threads.keep(accounts[index] ?? "", thread);
    expect(accounts.map((account) => all.includes(threads.take(account)))).toEqual([false, true, true, true]);
    const [, , , last] = all;
    if (last) threads.keep("acc_4", last);
    await expect.poll(() => last?.threadId).toBe(-1);
    expect(threads.take("acc_4")).not.toBe(last);
  });
});

it("the one file that hosts are served has the thread's program in it", async () => {
  const served = join(folder, "agent.mjs");
  await bundleNode("agent/image-build/prepare-apart.ts", served);
  write("source/Dockerfile", "FROM scratch\n");
  const { prepareApart: asServed } = (await import(served)) as { prepareApart: typeof prepareApart };
  const given = {
    accountId: "acc_1",
    folder: join(folder, "source"),
    input,
    buildCaFile: null,
    fileTimes: null,
  };
  const prepared = await asServed(given, () => Promise.resolve(false), over.signal);
  expect(prepared.dockerfile.name).toBe("Dockerfile");
  expect(await sent(prepared)).toEqual(new Map([["Dockerfile", "FROM scratch\n"]]));
});
