import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Host } from "../../agent/host.ts";
import { JobError, type JobRun } from "../../agent/job.ts";
import { openJournal, type Journal } from "../../agent/journal.ts";
import type { InventoryReporter } from "../../agent/inventory/reporter.ts";
import { retryDelayMs, startLink } from "../../agent/link.ts";
import type { StreamServer } from "../../agent/streams/stream-server.ts";
import { QuestionServer, type Means } from "../../agent/question-server.ts";
import { Runner } from "../../agent/runner.ts";
import type { Job } from "../../protocol/agent/jobs.ts";
import { maxFrameBytes, unfitAnswer } from "../../protocol/agent/messages.ts";
import type { Question } from "../../protocol/agent/running.ts";
import type { SiteRequest } from "../../protocol/api/requests.ts";
import { formatId } from "../../protocol/ids.ts";
import { deployArgs } from "../support/deploy-args.ts";
import { Hub, type Connection } from "../support/hub.ts";
import { runSpec } from "../support/run-spec.ts";
import { noneRequested } from "../support/none-requested.ts";
import { offerOf } from "../support/offer.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let made = 0;
const newId = <K extends "job" | "site" | "deployment" | "account" | "database">(kind: K) =>
  formatId(kind, ++made, new Uint8Array(10).fill(made));

const stopJob = (siteId = newId("site")): Job<"site.stop"> => ({
  id: newId("job"),
  kind: "site.stop",
  args: { siteId, hostnames: [] },
});

function deployJob(secret: string): Job<"site.deploy"> {
  return {
    id: newId("job"),
    kind: "site.deploy",
    args: deployArgs({
      run: runSpec({
        siteId: newId("site"),
        accountId: newId("account"),
        env: [{ key: "TOKEN", value: secret, scope: "both", secret: true }],
      }),
      deploymentId: newId("deployment"),
      source: { type: "image", reference: "app:1", login: null },
    }),
  };
}

type Handler = (job: Job, run: JobRun) => Promise<unknown>;

let hub: Hub;
let folder: string;
let journal: Journal;
let stop: () => Promise<void>;
let handler: Handler;

const startRunner = (slots: number) =>
  new Runner({
    host: { engine: { losses: () => 0, ping: () => Promise.resolve() }, ingress: {} } as Host,
    journal,
    handle: (_host, job, run) => handler(job, run),
    slots,
  });

const idleDesk = {
  connected: () => undefined,
  disconnected: () => undefined,
  receive: () => undefined,
} as unknown as QuestionServer;

const noInventory = {
  connected: () => undefined,
  disconnected: () => undefined,
  receive: () => undefined,
} as unknown as InventoryReporter;

const noStreams = { connected: () => undefined, disconnected: () => undefined } as unknown as StreamServer;

const login = { username: "u", password: "p" };
const noRows = { columns: [], rows: [], truncated: false, affectedRows: null, durationMs: 1 };

let received: unknown[] = [];

function start(slots = 2, questionServer = idleDesk): void {
  received = [];
  const runner = startRunner(slots);
  const facts = () => ({ cpuCount: 1, memoryMb: 1 });
  const end = startLink({
    url: hub.url,
    token: "token",
    instance: "1",
    runner,
    questionServer,
    streams: noStreams,
    inventory: noInventory,
    agentVersion: "test",
    facts,
    lostSites: () => [],
    onCertificates: (certificates) => received.push(certificates),
    peer: () => ({ port: 5302, publicKey: "key" }),
    onPeers: (peers) => received.push(peers),
    random: () => 0,
  });
  stop = async () => {
    end();
    await runner.shutdown();
  };
}

beforeEach(async () => {
  hub = await Hub.open();
  folder = temporaryFolder();
  journal = openJournal(join(folder, "journal.db"));
  handler = async () => ({});
});

afterEach(async () => {
  await stop();
  hub.close();
  journal.close();
});

const offer = (agent: Connection, job: Job, attempt = 1, timeoutMs = 60_000) =>
  agent.send(offerOf(job, attempt, timeoutMs));

/** A handler that ends when the test says so, or when it is aborted. */
function held() {
  const started: JobRun[] = [];
  const waiters: (() => void)[] = [];
  const release = Promise.withResolvers<unknown>();
  handler = (_job, run) => {
    started.push(run);
    for (const wake of waiters.splice(0)) wake();
    return new Promise((resolve, reject) => {
      void release.promise.then(resolve);
      run.signal.addEventListener("abort", () => reject(run.signal.reason as Error));
    });
  };
  return {
    release: () => release.resolve({}),
    async run(index = 0): Promise<JobRun> {
      while (started.length <= index) await new Promise<void>((resolve) => waiters.push(resolve));
      return started[index] as JobRun;
    },
    count: () => started.length,
  };
}

it("certificates reach the ingress, as often as the control plane sends them", async () => {
  start();
  const { agent } = await hub.greeted();
  const certificate = {
    name: "*.sites.example",
    chain: "chain",
    key: "key",
    notAfter: "2026-01-01T00:00:00.000Z",
  };
  const awaited = { name: "*.sites.example", since: "2026-01-01T00:00:00.000Z", own: 20 };
  const sent = [
    { type: "certificates", certificates: [], awaited },
    { type: "certificates", certificates: [certificate], awaited: null },
  ] as const;
  for (const { certificates, ...message } of sent)
    agent.send({ ...message, certificates: [...certificates] });
  await vi.waitUntil(() => received.length === 2);
  expect(received).toEqual(sent);
});

describe("a job", () => {
  it("is done, reported, and forgotten when that is acknowledged", async () => {
    start();
    const { agent, hello } = await hub.greeted();
    expect(hello).toMatchObject({ running: [], finished: [] });
    expect((await agent.next("ready")).free).toBe(2);
    const job = stopJob();
    offer(agent, job);
    expect(await agent.next("done")).toEqual({ type: "done", jobId: job.id, attempt: 1, result: {} });
    expect(journal.unacknowledged()).toHaveLength(1);
    agent.send({ type: "ack", jobId: job.id, attempt: 1 });
    agent.cut();
    expect((await hub.greeted()).hello.finished).toEqual([]);
  });

  it("whose report was lost is reported again after every reconnect until it is acknowledged", async () => {
    start();
    const { agent } = await hub.greeted();
    const job = stopJob();
    offer(agent, job);
    await agent.next("done");
    agent.cut();
    for (let round = 0; round < 2; round++) {
      const { agent: again, hello } = await hub.greeted();
      expect(hello.finished).toEqual([{ jobId: job.id, attempt: 1 }]);
      expect(await again.next("done")).toMatchObject({ jobId: job.id, attempt: 1 });
      again.cut();
    }
  });

  it("goes on through a cut of the link, and is named as running at the next hello", async () => {
    const work = held();
    start();
    const { agent } = await hub.greeted();
    const job = stopJob();
    offer(agent, job);
    await work.run();
    agent.cut();
    const { agent: again, hello } = await hub.greeted();
    expect(hello.running).toEqual([{ jobId: job.id, attempt: 1 }]);
    work.release();
    expect(await again.next("done")).toMatchObject({ jobId: job.id, attempt: 1 });
    expect(work.count()).toBe(1);
  });

  it("offered twice runs once", async () => {
    const work = held();
    start();
    const { agent } = await hub.greeted();
    const job = stopJob();
    offer(agent, job);
    offer(agent, job);
    await work.run();
    work.release();
    await agent.next("done");
    expect(work.count()).toBe(1);
    expect(agent.waiting("done")).toEqual([]);
  });

  it("of a site waits until the site's last one has settled; another site's does not", async () => {
    const work = held();
    start(3);
    const { agent } = await hub.greeted();
    const first = stopJob();
    const second = stopJob(first.args.siteId);
    const other = stopJob();
    for (const job of [first, second, other]) offer(agent, job);
    expect([(await work.run(0)).jobId, (await work.run(1)).jobId]).toEqual([first.id, other.id]);
    work.release();
    expect((await work.run(2)).jobId).toBe(second.id);
  });

  it("that is cancelled ends as cancelled", async () => {
    const work = held();
    start();
    const { agent } = await hub.greeted();
    const job = stopJob();
    offer(agent, job);
    await work.run();
    agent.send({ type: "cancel", jobId: job.id, attempt: 1 });
    expect(await agent.next("failed")).toMatchObject({ jobId: job.id, cancelled: true });
  });

  it("that is dropped stops, reports nothing and frees its place", async () => {
    const work = held();
    start(1);
    const { agent } = await hub.greeted();
    await agent.next("ready");
    const job = stopJob();
    offer(agent, job);
    const run = await work.run();
    agent.send({ type: "drop", jobId: job.id, attempt: 1 });
    expect((await agent.next("ready")).free).toBe(1);
    expect(run.signal.aborted).toBe(true);
    expect([...agent.waiting("done"), ...agent.waiting("failed")]).toEqual([]);
    expect(journal.unacknowledged()).toEqual([]);
  });

  it("that outlives its time ends with a sentence that says so", async () => {
    held();
    start();
    const { agent } = await hub.greeted();
    offer(agent, stopJob(), 1, 50);
    expect(await agent.next("failed")).toMatchObject({
      cancelled: false,
      error: expect.stringContaining("did not end within"),
    });
  });

  it("that fails tells the owner's sentence in one line; an unexpected error tells nothing of the inside", async () => {
    start();
    const { agent } = await hub.greeted();
    handler = () => Promise.reject(new JobError("The branch\nnope does not exist."));
    offer(agent, stopJob());
    expect((await agent.next("failed")).error).toBe("The branch nope does not exist.");
    handler = () => Promise.reject(new Error("ENOENT /var/lib/secret"));
    offer(agent, stopJob());
    expect((await agent.next("failed")).error).not.toContain("/var/lib");
  });
});

describe("a log", () => {
  it("comes in numbered batches, without secrets, and again after a cut until it is acknowledged", async () => {
    const work = held();
    start();
    const { agent } = await hub.greeted();
    const job = deployJob("hunter2-token");
    offer(agent, job);
    const run = await work.run();
    run.log("one");
    run.log("token is hunter2-token, in base64 " + Buffer.from("hunter2-token").toString("base64"), "stdout");
    const first = await agent.next("log");
    expect(first).toMatchObject({ firstSeq: 1, deploymentId: job.args.deploymentId });
    expect(first.lines.map(({ text }) => text)).toEqual(["one", "token is •••, in base64 •••"]);
    agent.send({ type: "logAck", jobId: job.id, attempt: 1, lastSeq: 1 });
    agent.cut();
    const { agent: again } = await hub.greeted();
    const repeated = await again.next("log");
    expect([repeated.firstSeq, repeated.lines.length]).toEqual([2, 1]);
  });

  it("is complete before the report that ends the deployment", async () => {
    start();
    const { agent } = await hub.greeted();
    handler = async (_job, run) => {
      run.log("the last words");
      throw new JobError("No.");
    };
    offer(agent, deployJob("x"));
    await agent.next("failed");
    expect(agent.waiting("log")).toHaveLength(1);
  });
});

describe("the link", () => {
  it("closes on a frame it does not understand and comes back", async () => {
    start();
    for (const frame of ["{not json", '{"type":"drop"}', '{"type":"job","attempt":0}']) {
      const { agent } = await hub.greeted();
      agent.send(frame);
      expect(await agent.closed).toBe(4002);
    }
    await hub.greeted();
  });

  it("does nothing more of what comes after a frame it does not understand", async () => {
    const work = held();
    start();
    const { agent } = await hub.greeted();
    agent.send('{"type":"drop"}');
    offer(agent, stopJob());
    expect(await agent.closed).toBe(4002);
    expect((await hub.greeted()).hello.running).toEqual([]);
    expect(work.count()).toBe(0);
  });

  it("refuses what only another version of the control plane knows, and carries everything else on", async () => {
    const work = held();
    start();
    const { agent } = await hub.greeted();
    const newer = deployJob("x");
    const asked = [
      { type: "surprise", of: "a later version" },
      { type: "certificates", certificates: [], of: "an earlier version" },
      { type: "ask", requestId: "1", question: { kind: "weather" } },
      { type: "openStream", streamId: 1, target: { kind: "weather" }, window: 1 },
      { type: "job", job: { ...newer, args: { ...newer.args, run: "differently" } }, attempt: 3 },
      { type: "job", job: { id: newId("job"), kind: "site.dance", args: {} }, attempt: 1 },
    ];
    for (const message of asked) agent.send(JSON.stringify(message));
    const ofAnotherVersion = /its version is not the service's.*update the agent/;
    const error = expect.stringMatching(ofAnotherVersion) as string;
    expect(await agent.next("answer")).toMatchObject({
      requestId: "1",
      answer: { kind: "refused", error },
      last: true,
    });
    expect(await agent.next("streamClosed")).toMatchObject({ streamId: 1, error });
    expect(await agent.next("failed")).toMatchObject({
      jobId: newer.id,
      attempt: 3,
      error,
      cancelled: false,
    });
    expect(await agent.next("failed")).toMatchObject({ attempt: 1, error });
    offer(agent, stopJob());
    await work.run();
    work.release();
    await agent.next("done");
  });

  it("takes nothing before it is welcomed, and is welcomed once", async () => {
    start();
    const early = await hub.connection();
    await early.next("hello");
    offer(early, stopJob());
    expect(await early.closed).toBe(4002);
    const { agent } = await hub.greeted();
    agent.send({ type: "welcome", epoch: 2, now: new Date().toISOString() });
    expect(await agent.closed).toBe(4002);
  });

  it("tries again where the control plane answers pings and no hello", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      start();
      const deaf = await hub.connection();
      await deaf.next("hello");
      vi.advanceTimersByTime(15_000);
      expect(await deaf.closed).toBe(4004);
      let back = false;
      void hub.greeted().then(() => (back = true));
      // Moves the faked time on while it waits.
      await vi.waitUntil(() => back, 10_000);
    } finally {
      vi.useRealTimers();
    }
  });

  it("carries a job through a cut at any step, and has it done once", async () => {
    let runs = 0;
    handler = async () => {
      runs++;
      return {};
    };
    start();
    const job = stopJob();
    // Before the hello is read, before the welcome, after it, with the offer lost, with the result lost, with the ack lost.
    (await hub.connection()).cut();
    const unwelcomed = await hub.connection();
    await unwelcomed.next("hello");
    unwelcomed.cut();
    (await hub.greeted()).agent.cut();
    const { agent } = await hub.greeted();
    await agent.next("ready");
    agent.cut();
    const { agent: offering } = await hub.greeted();
    offer(offering, job);
    await offering.next("done");
    offering.cut();
    const { agent: last, hello } = await hub.greeted();
    expect(hello.finished).toEqual([{ jobId: job.id, attempt: 1 }]);
    expect(await last.next("done")).toMatchObject({ jobId: job.id });
    last.send({ type: "ack", jobId: job.id, attempt: 1 });
    last.cut();
    expect((await hub.greeted()).hello).toMatchObject({ running: [], finished: [] });
    expect(runs).toBe(1);
  });

  it("carries what is too long, or not of the protocol, as a refusal of its question alone", async () => {
    const requests: SiteRequest[] = [];
    let taken: () => void = () => undefined;
    const means = {
      records: { crashes: () => [], databasesOut: () => [], events: () => [{ at: "Error" }] },
      diskUse: { databases: () => [] },
      requests: {
        ...noneRequested,
        after: () => requests.splice(0),
        onTaken: (_id: string, callback: () => void) => (taken = callback),
      },
      inspect: (question: Question) =>
        Promise.resolve(
          question.kind === "schema"
            ? { kind: "statementRefused", error: "Another time." }
            : { kind: "query", result: { ...noRows, rows: [["\u00e9".repeat(maxFrameBytes / 2)]] } },
        ),
    } satisfies Partial<Record<keyof Means, unknown>> as unknown as Means;
    start(2, new QuestionServer(means));
    const { agent } = await hub.greeted();
    const ask = (requestId: string, question: object) =>
      agent.send({ type: "ask", requestId, question: question as Question });
    const server = { databaseId: newId("database"), type: "mysql", databaseName: "d", login };
    const siteId = newId("site");
    ask("1", { kind: "requests", siteId, filters: {}, limit: 1, place: null, follow: true });
    ask("2", { kind: "events", siteId });
    ask("3", { kind: "query", statement: "SELECT 1", write: null, limit: 1, timeoutMs: 1000, ...server });
    ask("4", { kind: "schema", ...server });
    const found = [await agent.next("answer"), await agent.next("answer"), await agent.next("answer")];
    const refused = { answer: unfitAnswer, last: true };
    expect(found.toSorted((a, b) => a.requestId.localeCompare(b.requestId))).toMatchObject([
      { requestId: "2", ...refused },
      { requestId: "3", ...refused },
      { requestId: "4", answer: { kind: "statementRefused" } },
    ]);
    // What is followed ends with it.
    requests.push({ id: "no number" } as SiteRequest);
    taken();
    expect(await agent.next("answer")).toMatchObject({ requestId: "1", ...refused });
    requests.push({ id: "no number" } as SiteRequest);
    taken();
    ask("5", { kind: "schema", ...server });
    expect(await agent.next("answer")).toMatchObject({ requestId: "5" });
  });

  it("leaves out what else is not of the protocol, so that no connection ends for it", async () => {
    const work = held();
    start();
    const { agent } = await hub.greeted();
    const job = deployJob("x");
    offer(agent, job);
    const run = await work.run();
    run.print({ at: "Error", stream: "stdout", text: "grabbing logs" });
    work.release();
    expect(await agent.next("done")).toMatchObject({ jobId: job.id });
    expect(agent.waiting("log")).toEqual([]);
  });

  it("waits longer with every failure, at most five seconds, and does not hurry where it was refused", () => {
    const cut = { code: 1006, status: null };
    const most = () => 0.999;
    expect(retryDelayMs(0, cut, most)).toBeLessThanOrEqual(300);
    expect(retryDelayMs(1, cut, most)).toBeLessThan(retryDelayMs(3, cut, most));
    expect(retryDelayMs(50, cut, most)).toBeLessThanOrEqual(5050);
    expect(retryDelayMs(0, { code: 1006, status: 401 }, most)).toBe(60_000);
    expect(retryDelayMs(0, { code: 4001, status: null }, () => 0)).toBeGreaterThanOrEqual(10_000);
    expect(retryDelayMs(6, { code: 1006, status: 409 }, () => 0)).toBeGreaterThanOrEqual(10_000);
  });
});
