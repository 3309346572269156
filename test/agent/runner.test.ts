import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { answerTimeout } from "../../agent/docker/answer-timeout.ts";
import type { Host } from "../../agent/host.ts";
import { JobError, type JobRun } from "../../agent/job.ts";
import { openJournal, type Journal } from "../../agent/journal.ts";
import { Runner } from "../../agent/runner.ts";
import type { Job } from "../../protocol/agent/jobs.ts";
import { FromAgent } from "../../protocol/agent/messages.ts";
import { formatId } from "../../protocol/ids.ts";
import { deployArgs } from "../support/deploy-args.ts";
import { runSpec } from "../support/run-spec.ts";
import { offerOf } from "../support/offer.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let made = 0;
const newId = <K extends "job" | "site" | "deployment" | "account" | "command" | "backup">(kind: K) =>
  formatId(kind, ++made, new Uint8Array(10).fill(made));

const stopJob = (siteId = newId("site")): Job<"site.stop"> => ({
  id: newId("job"),
  kind: "site.stop",
  args: { siteId, hostnames: [] },
});

const backupJob = (): Job<"volume.backup"> => ({
  id: newId("job"),
  kind: "volume.backup",
  args: { siteId: newId("site"), volume: "data", backupId: newId("backup"), attempt: 1 },
});

const deployJob = (): Job<"site.deploy"> => ({
  id: newId("job"),
  kind: "site.deploy",
  args: deployArgs({
    run: runSpec({
      siteId: newId("site"),
      accountId: newId("account"),
      env: [{ key: "TOKEN", value: "hunter2-token", scope: "both", secret: true }],
    }),
    deploymentId: newId("deployment"),
    source: { type: "git", address: "git.example/a/b", branch: null, token: "ghp_private" },
  }),
});

type Work = {
  host: Host;
  job: Job;
  run: JobRun;
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
};

/** What handlers asked of the engine, and of what is on its way out. */
let removed: string[];
let retired: PromiseWithResolvers<void>;
/** Of the engine. */
let losses: number;
let ping: () => Promise<void>;
const host = {
  engine: {
    removeContainer: (id: string) => Promise.resolve(void removed.push(id)),
    losses: () => losses,
    ping: () => ping(),
  },
  ingress: { current: () => "parked" },
  retire: (siteId: string) => void removed.push(siteId),
  retired: () => retired.promise,
} as unknown as Host;

let folder: string;
let journal: Journal;
let runner: Runner;
let sent: FromAgent[];
let work: Work[];

/** What goes out is what the control plane's parser takes. */
const connect = () => runner.connected((message) => void sent.push(FromAgent.parse(message)));
const offer = (job: Job, attempt = 1) => runner.receive(offerOf(job, attempt));
const frames = <T extends FromAgent["type"]>(type: T) =>
  sent.filter((message): message is Extract<FromAgent, { type: T }> => message.type === type);
const begun = (count: number) => vi.waitUntil(() => work.length >= count && work, 10_000);
const answered = (count: number) =>
  vi.waitUntil(() => frames("done").length + frames("failed").length >= count, 10_000);

beforeEach(() => {
  folder = temporaryFolder();
  journal = openJournal(join(folder, "journal.db"));
  sent = [];
  work = [];
  removed = [];
  losses = 0;
  ping = () => Promise.resolve();
  retired = Promise.withResolvers();
  retired.resolve();
  runner = new Runner({
    host,
    journal,
    slots: 2,
    commandSlots: 1,
    startSlotMs: 20,
    graceMs: 20,
    handle: (means, job, run) =>
      new Promise((resolve, reject) => {
        work.push({ host: means, job, run, resolve, reject });
      }),
  });
  connect();
});

afterEach(async () => {
  for (const { reject } of work) reject(new Error("The test is over"));
  runner.disconnected();
  await runner.shutdown();
  journal.close();
});

describe("jobs", () => {
  it("beyond the slots wait for one, whatever was offered", async () => {
    const jobs = [deployJob(), deployJob(), deployJob()];
    for (const job of jobs) offer(job);
    const [first] = await begun(2);
    expect(work).toHaveLength(2);
    first?.resolve({});
    const [, , third] = await begun(3);
    expect(third?.job.id).toBe(jobs[2]?.id);
  });

  it("that build nothing wait for no build", async () => {
    for (const job of [deployJob(), deployJob(), deployJob(), stopJob()]) offer(job);
    await begun(3);
    expect(work.map(({ job }) => job.kind)).toEqual(["site.deploy", "site.deploy", "site.stop"]);
    work.at(-1)?.resolve({});
    await vi.waitUntil(() => frames("ready").at(-1)?.free === 0, 10_000);
    expect(frames("ready").at(-1)?.freeShort).toBe(4);
  });

  it("whose app does not come up give their slot to others, and go on", async () => {
    const jobs = [deployJob(), deployJob(), deployJob()];
    for (const job of jobs) offer(job);
    const [slow] = await begun(2);
    slow?.run.phase("start");
    await begun(3);
    work[1]?.resolve({});
    await vi.waitUntil(() => frames("ready").at(-1)?.free === 1, 10_000);
    slow?.resolve({});
    await vi.waitUntil(() => frames("done").length === 2, 10_000);
    expect(frames("ready").at(-1)?.free).toBe(1);
  });

  it("and commands of their sites wait for each other in nothing, and the room for each is told apart", async () => {
    const deploy = deployJob();
    const command = (): Job<"site.command"> => ({
      id: newId("job"),
      kind: "site.command",
      args: {
        run: deploy.args.run,
        deploymentId: deploy.args.deploymentId,
        commandId: newId("command"),
        command: "true",
        timeoutSeconds: 60,
      },
    });
    const [one, other] = [command(), command()];
    for (const job of [one, other, deploy, stopJob()]) offer(job);
    const [first] = await vi.waitUntil(() => work.length === 3 && work, 10_000);
    expect(work.map(({ job }) => job.kind).sort()).toEqual(["site.command", "site.deploy", "site.stop"]);
    first?.resolve({ exitCode: 0, error: null });
    await vi.waitUntil(() => work.length === 4, 10_000);
    work.find(({ job }) => job.id === deploy.id)?.resolve({});
    await vi.waitUntil(() => frames("ready").at(-1)?.free === 1, 10_000);
    expect(frames("ready").at(-1)?.freeCommands).toBe(0);
    work.find(({ job }) => job.id === other.id)?.resolve({ exitCode: 0, error: null });
    await vi.waitUntil(() => frames("ready").at(-1)?.freeCommands === 1, 10_000);
  });

  it("that wait are dropped and cancelled without having begun", async () => {
    const [one, two, dropped, cancelled] = [deployJob(), deployJob(), deployJob(), deployJob()];
    for (const job of [one, two, dropped, cancelled]) offer(job);
    await begun(2);
    runner.receive({ type: "drop", jobId: dropped.id, attempt: 1 });
    runner.receive({ type: "cancel", jobId: cancelled.id, attempt: 1 });
    for (const { resolve } of work) resolve({});
    await answered(3);
    expect(frames("failed")).toMatchObject([{ jobId: cancelled.id, cancelled: true }]);
    expect(frames("done").map(({ jobId }) => jobId)).toEqual([one.id, two.id]);
    expect(work).toHaveLength(2);
  });

  it("that have ended are not started again by an offer that comes late", async () => {
    const job = stopJob();
    offer(job);
    const [first] = await begun(1);
    first?.resolve({});
    await answered(1);
    offer(job);
    runner.receive({ type: "ack", jobId: job.id, attempt: 1 });
    offer(job);
    const other = stopJob();
    offer(other);
    expect((await begun(2))[1]?.job.id).toBe(other.id);
  });

  it("offered as a higher attempt start again when the older one has settled, and only the newer one reports", async () => {
    const job = stopJob();
    offer(job);
    const [first] = await begun(1);
    offer(job, 2);
    expect(first?.run.signal.aborted).toBe(true);
    expect(work).toHaveLength(1);
    first?.reject(new Error("aborted"));
    const [, second] = await begun(2);
    second?.resolve({});
    await answered(1);
    expect([...frames("done"), ...frames("failed")]).toMatchObject([{ type: "done", attempt: 2 }]);
  });

  it("cancelled after they came through are done", async () => {
    const job = stopJob();
    offer(job);
    const [only] = await begun(1);
    runner.receive({ type: "cancel", jobId: job.id, attempt: 1 });
    only?.resolve({});
    await answered(1);
    expect(frames("done")).toHaveLength(1);
  });

  it("cancelled or dropped as another attempt than the one in work go on", async () => {
    const job = stopJob();
    offer(job, 2);
    const [only] = await begun(1);
    runner.receive({ type: "cancel", jobId: job.id, attempt: 1 });
    runner.receive({ type: "drop", jobId: job.id, attempt: 1 });
    expect(only?.run.signal.aborted).toBe(false);
  });

  it("in work when the agent is told to stop report nothing: they are offered again", async () => {
    const job = stopJob();
    offer(job);
    const [only] = await begun(1);
    const stopped = runner.shutdown();
    expect(only?.run.signal.aborted).toBe(true);
    only?.reject(new Error("aborted"));
    await stopped;
    offer(stopJob());
    expect([...frames("done"), ...frames("failed")]).toEqual([]);
    expect(journal.unacknowledged()).toEqual([]);
    expect(work).toHaveLength(1);
  });
});

describe("a job that does not heed its end", () => {
  const offerShort = (job: Job) => runner.receive(offerOf(job, 1, 1));
  const roomIs = (free: number) => vi.waitUntil(() => frames("ready").at(-1)?.free === free, 10_000);

  it("is reported with the reason, and gives its slot back", async () => {
    const jobs = [stopJob(), stopJob()];
    for (const job of jobs) offerShort(job);
    await answered(2);
    for (const { id } of jobs)
      expect(frames("failed").find(({ jobId }) => jobId === id)?.error).toMatch(/did not end within/);
    await roomIs(2);
    expect(runner.leases().running).toEqual([]);
  });

  it("keeps its site's lane for a moment only: what comes next for the site begins", async () => {
    const siteId = newId("site");
    offerShort(stopJob(siteId));
    const next = stopJob(siteId);
    offer(next);
    const [, second] = await begun(2);
    expect(second?.job.id).toBe(next.id);
  });

  it.each(["comes through", "fails"])("reports once, though it %s later", async (later) => {
    const job = stopJob();
    offerShort(job);
    const [only] = await begun(1);
    await answered(1);
    await roomIs(2);
    const before = sent.length;
    only?.run.phase("swap");
    only?.run.log("too late");
    if (later === "fails") only?.reject(new Error("too late"));
    else only?.resolve({});
    await new Promise(setImmediate);
    expect(sent.slice(before)).toEqual([]);
    expect(journal.unacknowledged()).toMatchObject([{ type: "failed", jobId: job.id }]);
  });

  it("reaches neither engine nor ingress any more once it was given up, as the next attempt may be at work", async () => {
    const job = stopJob();
    offer(job);
    const [first] = await begun(1);
    offer(job, 2);
    const [, second] = await begun(2);
    await expect(first?.host.engine.removeContainer("made-by-both")).rejects.toThrow(/given up/);
    first?.host.retire(newId("site"), []);
    expect(removed).toEqual([]);
    expect(first?.host.ingress.current(newId("site"))).toBe("parked");
    await second?.host.engine.removeContainer("own");
    expect(removed).toEqual(["own"]);
    second?.resolve({});
    await answered(1);
    expect([...frames("done"), ...frames("failed")]).toMatchObject([{ type: "done", attempt: 2 }]);
  });

  it("still leaves nothing behind of what it had asked to be removed, and waits for that a moment only", async () => {
    const job = stopJob();
    offer(job);
    const [only] = await begun(1);
    only?.run.afterwards(() => only.host.engine.removeContainer("left"));
    only?.run.afterwards(() => new Promise(() => undefined));
    runner.receive({ type: "cancel", jobId: job.id, attempt: 1 });
    await answered(1);
    await roomIs(2);
    expect(removed).toEqual(["left"]);
  });
});

describe("while the engine is restarted", () => {
  const fail = (one: Work | undefined) => {
    losses++;
    one?.reject(new Error("socket hang up"));
  };

  it("a job begins once more, and what is left of its first run has no effect", async () => {
    const job = deployJob();
    // As the image may have one.
    job.args.release = { command: null, timeoutSeconds: 60 };
    offer(job);
    const [first] = await begun(1);
    first?.run.phase("start");
    fail(first);
    const [, second] = await begun(2);
    await expect(first?.host.engine.removeContainer("left")).rejects.toThrow("once more");
    await second?.host.engine.removeContainer("right");
    expect(removed).toEqual(["right"]);
    second?.resolve({});
    await answered(1);
    expect(frames("failed")).toEqual([]);
    const said = frames("log").flatMap(({ lines }) => lines.map(({ text }) => text));
    expect(said).toEqual([
      "The host's Docker engine was restarted or did not answer: this is done once more.",
    ]);
  });

  it("a job that fails so again, or may not begin again, says that it was the engine", async () => {
    const released = deployJob();
    released.args.release = { command: "migrate", timeoutSeconds: 60 };
    const command: Job<"site.command"> = {
      id: newId("job"),
      kind: "site.command",
      args: {
        run: released.args.run,
        deploymentId: newId("deployment"),
        commandId: newId("command"),
        command: "migrate",
        timeoutSeconds: 60,
      },
    };
    offer(stopJob());
    const [first] = await begun(1);
    fail(first);
    const [, second] = await begun(2);
    fail(second);
    await answered(1);
    offer(released);
    const [, , third] = await begun(3);
    if (third) third.run.hasRunCommand = true;
    fail(third);
    await answered(2);
    offer(command);
    const [, , , fourth] = await begun(4);
    fail(fourth);
    await answered(3);
    expect(work).toHaveLength(4);
    for (const { error } of frames("failed"))
      expect(error).toMatch(/^The host's Docker engine was restarted or did not answer/);
  });

  it("a job that may begin again waits for the engine for half of its time, and says so", async () => {
    const logged = () => frames("log").flatMap(({ lines }) => lines.map(({ text }) => text));
    let refused = 0;
    ping = () => Promise.reject(new Error(`Refused ${++refused}`));
    runner.receive(offerOf(deployJob(), 1, 2000));
    const [first] = await begun(1);
    fail(first);
    await answered(1);
    expect(frames("failed")[0]?.error).toMatch(/^The host's Docker engine was restarted or did not answer/);
    expect(logged()[0]).toBe("The host's Docker engine does not answer: this waits for it.");

    runner.receive(offerOf(deployJob(), 1, 60_000));
    const [, second] = await begun(2);
    fail(second);
    const before = refused;
    await vi.waitUntil(() => refused > before);
    ping = () => Promise.resolve();
    const [, , third] = await begun(3);
    third?.resolve({});
    await answered(2);
    expect(frames("done")).toHaveLength(1);
  });

  it("a job that fails because the engine hung begins once more when it goes on, though it never went away", async () => {
    const hung = Promise.withResolvers<void>();
    ping = () => hung.promise;
    offer(deployJob());
    const [first] = await begun(1);
    first?.reject(new Error("socket hang up"));
    await vi.waitUntil(() => frames("log").length > 0, 10_000);
    hung.resolve();
    const [, second] = await begun(2);
    second?.resolve({});
    await answered(1);
    const said = frames("log").flatMap(({ lines }) => lines.map(({ text }) => text));
    expect(said).toEqual([
      "The host's Docker engine does not answer: this waits for it.",
      "The host's Docker engine was restarted or did not answer: this is done once more.",
    ]);

    ping = () => Promise.resolve();
    offer(deployJob());
    const [, , third] = await begun(3);
    const signal = answerTimeout(1);
    await vi.waitUntil(() => signal.aborted);
    third?.reject(new Error("The operation was aborted", { cause: signal.reason }));
    const [, , , fourth] = await begun(4);
    fourth?.resolve({});
    await answered(2);
    expect(frames("failed")).toEqual([]);
  });

  it("a job that fails for another reason says that one, once", async () => {
    losses = 7;
    offer(stopJob());
    const [first] = await begun(1);
    first?.reject(new JobError("The app ended: mend it."));
    await answered(1);
    expect([work.length, frames("failed")[0]?.error]).toEqual([1, "The app ended: mend it."]);
  });
});

describe("while the engine does not answer", () => {
  it("the agent says that it has no room, also at a hello, and how much it has once the engine is back", async () => {
    const none = { free: 0, freeCommands: 0, freeShort: 0, slots: 0 };
    runner.engineIs(false);
    expect(frames("ready").at(-1)).toMatchObject(none);
    expect(runner.leases().slots).toBe(0);
    offer(stopJob());
    const [only] = await begun(1);
    only?.resolve({});
    await answered(1);
    connect();
    expect(frames("ready").at(-1)).toEqual({ ...none, type: "ready", slots: undefined });
    runner.engineIs(true);
    expect(frames("ready").at(-1)).toMatchObject({ free: 2, freeCommands: 1, freeShort: 4, slots: 2 });
    expect(runner.leases().slots).toBe(2);
  });
});

describe("an agent that is to be replaced", () => {
  it("says that it has no room, begins nothing more, and ends when what runs has come through", async () => {
    offer(stopJob());
    const [first] = await begun(1);
    let ended = false;
    const finishing = runner.finish().then(() => (ended = true));
    expect(frames("ready").at(-1)).toMatchObject({ free: 0, freeCommands: 0, slots: 0 });
    expect(runner.leases().slots).toBe(0);
    offer(stopJob());
    await Promise.resolve();
    expect([work.length, ended]).toEqual([1, false]);
    first?.resolve({});
    await finishing;
    expect(frames("done").map(({ jobId }) => jobId)).toEqual([first?.job.id]);
  });

  it("leaves a backup that takes hours to the next one, once nothing else runs", async () => {
    retired = Promise.withResolvers();
    const backup = backupJob();
    offer(backup);
    offer(stopJob());
    const [long, short] = await begun(2);
    const signal = long?.run.signal;
    signal?.addEventListener("abort", () => long?.reject(signal.reason));
    const finishing = runner.finish();
    short?.resolve({});
    await answered(1);
    await new Promise(setImmediate);
    expect(signal?.aborted).toBe(false);
    retired.resolve();
    await finishing;
    expect([...frames("done"), ...frames("failed")].map(({ jobId }) => jobId)).toEqual([short?.job.id]);
    expect(runner.leases()).toMatchObject({ running: [], finished: [{ jobId: short?.job.id }] });
  });

  it("ends when old versions have ended what they began", async () => {
    retired = Promise.withResolvers();
    let ended = false;
    const finishing = runner.finish().then(() => (ended = true));
    await new Promise(setImmediate);
    expect(ended).toBe(false);
    retired.resolve();
    await finishing;
  });
});

describe("a report", () => {
  it("that the control plane failed to record is sent again while the link stays up", async () => {
    runner.disconnected();
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      connect();
      const job = stopJob();
      offer(job);
      const [only] = await begun(1);
      only?.resolve({});
      await answered(1);
      vi.advanceTimersByTime(30_000);
      expect(frames("done")).toHaveLength(2);
      runner.receive({ type: "ack", jobId: job.id, attempt: 1 });
      vi.advanceTimersByTime(60_000);
      expect(frames("done")).toHaveLength(2);
      runner.disconnected();
    } finally {
      vi.useRealTimers();
    }
  });

  it("of a failure says how long the phases took that ended", async () => {
    offer(deployJob());
    const [only] = await begun(1);
    only?.run.phase("clone");
    only?.run.phase("build", { commit: "c".repeat(40), commitMessage: "\u202e\u001b[1mOne" });
    only?.reject(new JobError("The build failed: mend it."));
    await answered(1);
    expect(frames("phase").at(-1)?.commitMessage).toBe("One");
    expect(frames("failed")[0]?.durations).toEqual({
      clone: expect.any(Number),
      build: null,
      start: null,
      swap: null,
    });
    const said = frames("log").flatMap(({ lines }) => lines.map(({ text }) => text));
    expect(said.at(-1)).toMatch(/^Fetched in [\d.]+ s, ended after [\d.]+ s of building\.$/);
  });

  it("leaves a log whose lines name their step", async () => {
    offer(deployJob());
    const [only] = await begun(1);
    only?.run.log("Before any");
    only?.run.phase("clone");
    only?.run.log("Fetching");
    only?.run.phase("build");
    only?.run.log("npm ci", "stdout");
    only?.reject(new JobError("The build failed: mend it."));
    await answered(1);
    const lines = frames("log").flatMap((frame) => frame.lines);
    expect(lines.slice(0, 3).map(({ text, step }) => [text, step])).toEqual([
      ["Before any", undefined],
      ["Fetching", "clone"],
      ["npm ci", "build"],
    ]);
  });

  it.each([
    ["ENOSPC: no space left on device, write", /^The host's disk is full: ask the operator/],
    ["EIO: i/o error, fsync", /^The host's disk is failing: ask the operator to fix it, naming job_/],
    ["EROFS: read-only file system, open '/var/lib/x'", /^The host's disk is failing/],
    ["socket hang up", /^Something went wrong on the host: try again, or ask the operator about job_/],
  ])("that was not foreseen says whose it is to mend: %s", async (text, expected) => {
    offer(deployJob());
    const [only] = await begun(1);
    only?.reject(new Error(text));
    await answered(1);
    expect(frames("failed")[0]?.error).toMatch(expected);
  });

  it("shows no secret, of the site or of its repository, and is one line", async () => {
    offer(deployJob());
    const [only] = await begun(1);
    only?.reject(new JobError("git said\nfatal: https://x:ghp_private@git.example\u001b[2J hunter2-token"));
    await answered(1);
    expect(frames("failed")[0]?.error).toBe("git said fatal: https://x:•••@git.example •••");
  });
});

it.each(["of a deployment", "of a rollback"])("shows no password of a registry: %s", async (which) => {
  const { args, ...job } = deployJob();
  const login = { username: "robot", password: "pull-s3cret" };
  const image = { type: "image", reference: "a.example/b:1", login } as const;
  const back = { type: "kept", deploymentId: args.deploymentId, otherwise: image } as const;
  offer({ ...job, args: { ...args, source: which === "of a rollback" ? back : image } });
  const [only] = await begun(1);
  only?.reject(new JobError("The registry said no to robot:pull-s3cret"));
  await answered(1);
  expect(frames("failed")[0]?.error).toBe("The registry said no to robot:•••");
});

describe("progress", () => {
  it("made while the link was down is told when it is up again", async () => {
    offer(deployJob());
    const [only] = await begun(1);
    runner.disconnected();
    only?.run.phase("clone");
    only?.run.phase("build", { commit: "c".repeat(40), commitMessage: "One" });
    only?.run.phase("start");
    connect();
    expect(frames("phase")).toMatchObject([{ phase: "start", commit: "c".repeat(40), commitMessage: "One" }]);
  });

  it("with a commit message of any length is a message of the protocol", async () => {
    offer(deployJob());
    const [only] = await begun(1);
    only?.run.phase("build", { commit: "c".repeat(40), commitMessage: "x".repeat(5000) });
    expect(frames("phase")).toHaveLength(1);
  });
});

describe("a log", () => {
  const lines = () => frames("log").flatMap((frame) => frame.lines.map(({ text }) => text));

  it("that grows faster than it is taken is bounded, and says how much is missing", async () => {
    offer(deployJob());
    const [only] = await begun(1);
    for (let round = 0; round < 200_000; round++) only?.run.log("");
    only?.run.log("x".repeat(20_000));
    const held = lines().length;
    expect(held).toBeLessThan(70_000);
    const { jobId, attempt } = frames("log")[0] ?? expect.fail("no log");
    runner.receive({ type: "logAck", jobId, attempt, lastSeq: held });
    only?.run.log("the last words");
    only?.resolve({});
    await answered(1);
    const shown = lines();
    expect(shown.at(-1)).toBe("the last words");
    expect(shown.at(-2)).toMatch(/^\d+ lines were dropped/);
  });

  it("that the control plane failed to keep is sent again while the link stays up, and only then", async () => {
    runner.disconnected();
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      connect();
      offer(deployJob());
      const [only] = await begun(1);
      only?.run.log("one");
      await vi.waitUntil(() => lines().length > 0);
      vi.advanceTimersByTime(60_000);
      expect(lines()).toEqual(["one", "one"]);
      const { jobId, attempt } = frames("log")[0] ?? expect.fail("no log");
      runner.receive({ type: "logAck", jobId, attempt, lastSeq: 1 });
      only?.run.log("two");
      await vi.waitUntil(() => lines().length > 2);
      // It is taken, if slowly.
      vi.advanceTimersByTime(30_000);
      expect(lines()).toEqual(["one", "one", "two"]);
      only?.resolve({});
      await answered(1);
      runner.disconnected();
    } finally {
      vi.useRealTimers();
    }
  });

  it("says that lines are missing even if none follows", async () => {
    offer(deployJob());
    const [only] = await begun(1);
    for (let round = 0; round < 1000; round++) only?.run.log("x".repeat(7900));
    const { jobId, attempt } = frames("log")[0] ?? expect.fail("no log");
    runner.receive({ type: "logAck", jobId, attempt, lastSeq: lines().length });
    await vi.waitUntil(() => lines().at(-1)?.includes("lines were dropped"), 10_000);
  });

  it("numbers its lines without a gap, cuts long ones, and fits its frames", async () => {
    offer(deployJob());
    const [only] = await begun(1);
    for (let round = 0; round < 500; round++) only?.run.log('"\\'.repeat(round * 10));
    only?.resolve({});
    await answered(1);
    let expected = 1;
    for (const frame of frames("log")) {
      expect(frame.firstSeq).toBe(expected);
      expected += frame.lines.length;
      expect(Buffer.byteLength(JSON.stringify(frame))).toBeLessThan(1024 * 1024);
    }
    expect(expected).toBe(501);
    expect(lines().at(-1)).toMatch(/\(line cut\)$/);
  });

  it("of a dropped job goes no further", async () => {
    const job = deployJob();
    offer(job);
    const [only] = await begun(1);
    runner.receive({ type: "drop", jobId: job.id, attempt: 1 });
    for (let round = 0; round < 1000; round++) only?.run.log("x".repeat(1000));
    expect(frames("log")).toEqual([]);
  });
});
