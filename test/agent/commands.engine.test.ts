import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { networkName, siteContainer } from "../../agent/docker/specs.ts";
import { adoptCommands } from "../../agent/startup/adopt-commands.ts";
import { handle, handlers } from "../../agent/handlers/index.ts";
import { wasInterrupted } from "../../agent/sites/command.ts";
import { sweep } from "../../agent/startup/sweep.ts";
import type { Host } from "../../agent/host.ts";
import type { JobRun } from "../../agent/job.ts";
import { bridgeName } from "../../agent/isolation/rules.ts";
import { openJournal, type Journal } from "../../agent/journal.ts";
import { Runner } from "../../agent/runner.ts";
import type { Job } from "../../protocol/agent/jobs.ts";
import { FromAgent, type AgentLogLine } from "../../protocol/agent/messages.ts";
import { engine, execute, newId } from "../support/engine.ts";
import { offerOf } from "../support/offer.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { emptyDisk } from "../support/empty-disk.ts";

const agentId = randomBytes(8).toString("hex");
const [siteId, accountId, deploymentId, shelllessId] = [
  newId("site"),
  newId("account"),
  newId("deployment"),
  newId("deployment"),
];
const network = networkName(accountId);
const repository = `berth-site/${agentId}`;

const host = {
  agentId,
  engine,
  isolation: { demand: () => Promise.resolve() },
  buildRoom: emptyDisk(),
  imageRepository: () => repository,
  ingress: {
    newest: (_: string, { hostnames }: { hostnames: string[] }) => hostnames,
    current: () => null,
    unroute: () => Promise.resolve(),
    park: () => Promise.resolve(),
  },
} as unknown as Host;

const run = {
  siteId,
  accountId,
  hostnames: ["a.localhost"],
  port: 3000,
  startCommand: "node server.js",
  healthCheckPath: null,
  startTimeoutSeconds: 10,
  env: [
    { key: "COLOUR", value: "blue", scope: "runtime" as const, secret: false },
    { key: "TOKEN", value: "hunter2-token", scope: "both" as const, secret: true },
    { key: "BUILD_ONLY", value: "x", scope: "build" as const, secret: false },
  ],
  limits: { memoryMb: 128, cpuMilli: 500, pids: 64 },
  replicas: 1,
  volumes: [],
};

type Options = { timeoutSeconds?: number; deploymentId?: typeof deploymentId };
const commandJob = (command: string, options: Options = {}): Job<"site.command"> => ({
  id: newId("job"),
  kind: "site.command",
  args: { run, deploymentId, commandId: newId("command"), command, timeoutSeconds: 60, ...options },
});

let folder: string;
let journal: Journal;
let runner: Runner;
let isOpen = false;
/** What the control plane has of each job's log, by its rule: each number once, none before the one below it. */
let logs: Map<string, AgentLogLine[]>;
let reports: Map<string, Extract<FromAgent, { type: "done" | "failed" }>>;

/** The control plane: keeps, acknowledges. */
const connect = (to: Runner) => {
  const answer = (message: Parameters<Runner["receive"]>[0]) =>
    void setImmediate(() => {
      if (runner === to && isOpen) to.receive(message);
    });
  isOpen = true;
  to.connected((sent) => {
    const message = FromAgent.parse(sent);
    if (message.type === "log") {
      const lines = logs.get(message.jobId) ?? [];
      expect(message.firstSeq).toBeLessThanOrEqual(lines.length + 1);
      lines.push(...message.lines.slice(lines.length + 1 - message.firstSeq));
      logs.set(message.jobId, lines);
      answer({ type: "logAck", jobId: message.jobId, attempt: message.attempt, lastSeq: lines.length });
    }
    if (message.type === "done" || message.type === "failed") {
      reports.set(message.jobId, message);
      answer({ type: "ack", jobId: message.jobId, attempt: message.attempt });
    }
  });
};
const disconnect = () => {
  isOpen = false;
  runner.disconnected();
};
const newRunner = () => new Runner({ host, journal, handle, slots: 1, commandSlots: 4 });
const offer = (job: Job) => runner.receive(offerOf(job, 1, 600_000));
const reportOf = (job: Job) => vi.waitUntil(() => reports.get(job.id), { timeout: 60_000 });
const textsOf = (job: Job) => (logs.get(job.id) ?? []).map(({ text }) => text);
const containers = async () =>
  (await engine.listContainers({ "berth.agent": agentId })).filter(({ name }) =>
    name.startsWith("berth-cmd_"),
  );
const isStarted = (job: Job<"site.command">) =>
  vi.waitUntil(async () => (await engine.inspectContainer(`berth-${job.args.commandId}`))?.running, {
    timeout: 20_000,
  });

/** Offered, run, reported, gone. */
async function outcome(command: string, options: Options = {}) {
  const job = commandJob(command, options);
  offer(job);
  const report = await reportOf(job);
  await vi.waitUntil(async () => (await containers()).length === 0, { timeout: 10_000 });
  return { job, report, texts: textsOf(job) };
}

beforeAll(async () => {
  // As a build leaves it, with labels that are taken over by containers.
  const labelled = `FROM node:24-bookworm-slim\nLABEL berth.managed=true berth.site=${siteId} berth.command=${newId("command")}\n`;
  execFileSync("docker", ["build", "--quiet", "--tag", `${repository}:${deploymentId}`, "-"], {
    input: labelled,
  });
  const empty = join(mkdtempSync(join(tmpdir(), "berth-empty-")), "empty.tar");
  execFileSync("tar", ["--create", "--file", empty, "--files-from", "/dev/null"]);
  execFileSync("docker", ["import", empty, `${repository}:${shelllessId}`]);
  rmSync(join(empty, ".."), { recursive: true });
});

beforeEach(() => {
  folder = temporaryFolder();
  journal = openJournal(join(folder, "journal.db"));
  [logs, reports] = [new Map(), new Map()];
  runner = newRunner();
  connect(runner);
});

afterEach(async () => {
  disconnect();
  await runner.shutdown();
  journal.close();
  for (const { id } of await containers()) await engine.removeContainer(id);
});

afterAll(async () => {
  for (const tag of await engine.imageTags(repository)) await engine.removeImage(tag);
  await engine.removeNetwork(network);
});

describe("a command", () => {
  it("sees the site's environment, and its secrets are masked in what it prints", async () => {
    const { report, texts } = await outcome(
      'echo "$COLOUR $PORT $TOKEN [$BUILD_ONLY]"; echo problem >&2; printf "no end of line"',
    );
    expect(report).toMatchObject({ type: "done", result: { exitCode: 0, error: null } });
    expect(texts.sort()).toEqual(["blue 3000 ••• []", "no end of line", "problem"]);
  });

  it("reaches the account's sites by the account's network, and nothing of the host", async () => {
    await engine.ensureNetwork(network, bridgeName(agentId, network), { "berth.managed": "true" });
    const neighbour = await engine.createContainer(
      siteContainer(
        agentId,
        { ...run, startCommand: `node -e 'require("net").createServer((s) => s.end("hi")).listen(3000)'` },
        deploymentId,
        `${repository}:${deploymentId}`,
        "",
      ),
    );
    await engine.startContainer(neighbour);
    const address = (await engine.inspectContainer(neighbour))?.addresses[network];
    const ask = `node -e 'const s=require("net").connect(3000,"${address}").on("data",(d)=>console.log(""+d)).on("error",()=>setTimeout(()=>process.exit(1),200))'`;
    const { texts } = await outcome(
      `until ${ask}; do :; done; ls /var/run/docker.sock; grep -c . /proc/mounts > /dev/null; grep CapBnd /proc/self/status; ls /proc | grep -c '^[0-9]*$'`,
    );
    await engine.removeContainer(neighbour);
    expect(texts).toContain("hi");
    expect(texts).toContain("ls: cannot access '/var/run/docker.sock': No such file or directory");
    // CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETUID, NET_BIND_SERVICE, and no other.
    expect(texts).toContain("CapBnd:\t00000000000004eb");
    // What it says to stderr may come after what it printed later.
    expect(Number(texts.find((text) => /^\d+$/.test(text)))).toBeLessThan(8);
  });

  it("has the limits and the hardening of its site's own container, and is not started again", async () => {
    const job = commandJob("sleep 60");
    offer(job);
    await isStarted(job);
    const spec = siteContainer(agentId, run, deploymentId, "image", "");
    const { stdout } = await execute("docker", ["inspect", `berth-${job.args.commandId}`]);
    const [{ HostConfig }] = JSON.parse(stdout) as [{ HostConfig: object; Config: { Env: string[] } }];
    const { RestartPolicy: _restart, OomScoreAdj: _score, Memory, ...same } = spec.HostConfig ?? {};
    const caps = (list: string[] | undefined) => list?.map((name) => name.replace(/^CAP_/, "")).sort();
    const { CapAdd, ...shown } = HostConfig as typeof same;
    const { CapAdd: wanted, ...rest } = same;
    expect(caps(CapAdd)).toEqual(caps(wanted));
    expect(shown).toMatchObject(rest);
    expect(HostConfig).toMatchObject({
      Memory,
      RestartPolicy: { Name: "no" },
      OomScoreAdj: 700,
      Privileged: false,
      Binds: null,
    });
    runner.receive({ type: "cancel", jobId: job.id, attempt: 1 });
    expect(await reportOf(job)).toMatchObject({ type: "failed", cancelled: true });
  });

  it.each([
    ["exit 3", 3, /^exited with 3: /],
    ["kill -KILL $$", 137, /^exited with 137 \(SIGKILL\)/],
    ["no-such-program", 127, /^exited with 127: /],
    [
      'node -e "const a=[];for(;;)a.push(Buffer.alloc(1e7,1))"',
      137,
      /used more memory than the site's pack has \(128 MB\)/,
    ],
  ])("that does `%s` has failed, with its code and a reason", async (command, exitCode, error) => {
    const { report } = await outcome(command);
    expect(report).toMatchObject({ type: "done", result: { exitCode, error: expect.stringMatching(error) } });
  });

  it("in an image without a shell says so", async () => {
    const { report } = await outcome("echo hello", { deploymentId: shelllessId });
    expect(JSON.stringify(report)).toMatch(/image has no sh, which commands need/);
  });

  it("of a deployment whose image is gone says so", async () => {
    const { report } = await outcome("echo hello", { deploymentId: newId("deployment") });
    expect(report).toMatchObject({ type: "failed", error: expect.stringMatching(/no longer on the host/) });
  });
});

describe("a hostile command", () => {
  it("that ignores SIGTERM is killed ten seconds after its time is over", async () => {
    const started = performance.now();
    const { report } = await outcome("trap '' TERM; while :; do sleep 1; done", { timeoutSeconds: 1 });
    expect(report).toMatchObject({
      type: "done",
      result: { exitCode: null, error: expect.stringMatching(/^It did not end within 1 seconds/) },
    });
    expect(performance.now() - started).toBeLessThan(60_000);
  });

  it("that leaves daemons behind leaves none", async () => {
    const { report } = await outcome("setsid sleep 4242 & (setsid sleep 4242 &); sleep 0.3; echo done");
    expect(report).toMatchObject({ result: { exitCode: 0 } });
    const { stdout } = await execute("ps", ["-eo", "args"]);
    expect(stdout).not.toMatch(/sleep 4242/);
  });

  it("that is a fork bomb stays within its processes, and goes", async () => {
    const { report } = await outcome("bomb() { bomb | bomb & }; bomb; sleep 30", { timeoutSeconds: 3 });
    expect(report.type).toBe("done");
    await engine.ping();
  });

  it("that prints without end has its log cut with a marker, and holds up nobody", async () => {
    const job = commandJob("yes 'a line of the log that has no end'", { timeoutSeconds: 8 });
    offer(job);
    await isStarted(job);
    expect((await outcomeBeside("echo beside")).texts).toEqual(["beside"]);
    expect(await reportOf(job)).toMatchObject({ result: { exitCode: null } });
    const texts = textsOf(job);
    const cutAt = texts.indexOf("The log is truncated after 4 MiB.");
    expect([texts.lastIndexOf("The log is truncated after 4 MiB."), texts[cutAt + 1]]).toEqual([
      cutAt,
      "It printed last:",
    ]);
    expect(texts.length - cutAt).toBeLessThan(1003);
    expect(texts.join("\n").length).toBeLessThan(4 * 1024 * 1024);
  });
});

describe("a command that prints more than its log takes", () => {
  const chatty =
    "yes 'a line of some length, so that there are not too many' | head -n 50000; echo broken; exit 3";

  it("shows how it began and how it ended, where the reason is", async () => {
    const job = commandJob(chatty);
    offer(job);
    expect(await reportOf(job)).toMatchObject({ result: { exitCode: 3 } });
    const texts = textsOf(job);
    expect(texts[0]).toMatch(/^a line/);
    expect(texts.filter((text) => text === "It printed last:")).toHaveLength(1);
    expect(texts.at(-1)).toBe("broken");
  });

  it("and no line twice, where the end comes soon after what is left out", async () => {
    const job = commandJob("seq -f 'number %.0f with some more behind it, to be longer' 1 37500");
    offer(job);
    expect(await reportOf(job)).toMatchObject({ result: { exitCode: 0 } });
    const numbers = textsOf(job).filter((text) => text.startsWith("number"));
    expect(textsOf(job)).toContain("It printed last:");
    expect(numbers).toHaveLength(37_500);
    expect(new Set(numbers).size).toBe(37_500);
  });
});

/** As `outcome`, while others run. */
async function outcomeBeside(command: string) {
  const job = commandJob(command);
  offer(job);
  return { report: await reportOf(job), texts: textsOf(job) };
}

describe("an agent that ends in mid-command", () => {
  const counting = (to: number) => `for i in $(seq 1 ${to}); do echo "line $i"; sleep 0.02; done; exit 7`;
  const expected = (to: number) => Array.from({ length: to }, (_, index) => `line ${index + 1}`);

  it.each([true, false])(
    "is taken over by the next one: no line is lost or said twice (journal kept: %s)",
    async (isKept) => {
      const job = commandJob(counting(150));
      offer(job);
      await vi.waitUntil(() => textsOf(job).length > 30, { timeout: 20_000 });
      disconnect();
      await runner.shutdown();
      expect(await containers()).toMatchObject([{ running: true }]);
      if (!isKept) {
        journal.close();
        rmSync(folder, { recursive: true });
        journal = openJournal(join(folder, "journal.db"));
      }
      runner = newRunner();
      await adoptCommands(host, journal, runner);
      expect(runner.leases().running).toEqual([{ jobId: job.id, attempt: 1 }]);
      connect(runner);
      expect(await reportOf(job)).toMatchObject({ result: { exitCode: 7 } });
      expect(textsOf(job)).toEqual(expected(150));
      await vi.waitUntil(async () => (await containers()).length === 0, 10_000);
    },
  );

  it("after which it ended by itself: its end and its last lines are reported all the same, and its time limit holds", async () => {
    const [ending, endless] = [commandJob(counting(60)), commandJob("sleep 300", { timeoutSeconds: 4 })];
    offer(ending);
    offer(endless);
    await isStarted(endless);
    await vi.waitUntil(() => textsOf(ending).length > 10, { timeout: 20_000 });
    disconnect();
    await runner.shutdown();
    await vi.waitUntil(
      async () => !(await engine.inspectContainer(`berth-${ending.args.commandId}`))?.running,
      { timeout: 20_000 },
    );
    runner = newRunner();
    await adoptCommands(host, journal, runner);
    connect(runner);
    expect(await reportOf(ending)).toMatchObject({ result: { exitCode: 7 } });
    expect(textsOf(ending)).toEqual(expected(60));
    expect(await reportOf(endless)).toMatchObject({
      result: { error: expect.stringMatching(/within 4 seconds/) },
    });
  });

  it("leaves containers of what it had reported: the next one removes them", async () => {
    const job = commandJob("sleep 60");
    offer(job);
    await isStarted(job);
    disconnect();
    await runner.shutdown();
    journal.finish({ type: "done", jobId: job.id, attempt: 1, result: { exitCode: 0, error: null } });
    runner = newRunner();
    await adoptCommands(host, journal, runner);
    expect(await containers()).toEqual([]);
    connect(runner);
    expect(await reportOf(job)).toMatchObject({ result: { exitCode: 0 } });
  });

  it("was interrupted with its host, where the command began before the host did and did not end before", () => {
    const at = (seconds: number) => new Date(seconds * 1000);
    const ran = (startedAt: Date | null, finishedAt: Date | null, running = false) =>
      wasInterrupted({ running, startedAt, finishedAt }, at(100));
    expect(ran(at(50), at(110))).toBe(true);
    expect(ran(at(50), null)).toBe(true);
    expect(ran(at(50), at(90))).toBe(false);
    expect(ran(at(150), at(160))).toBe(false);
    expect(ran(at(150), null, true)).toBe(false);
    expect(ran(null, null)).toBe(false);
  });
});

describe("of its site", () => {
  const ofSite = () => engine.listContainers({ "berth.managed": "true", "berth.site": siteId });

  it("no container is taken for a command's, nor a command's for the site's, whatever labels the image has", async () => {
    const id = await engine.createContainer(
      siteContainer(
        agentId,
        { ...run, startCommand: "sleep 60" },
        deploymentId,
        `${repository}:${deploymentId}`,
        "",
      ),
    );
    await engine.startContainer(id);
    const job = commandJob("sleep 60");
    offer(job);
    await isStarted(job);
    expect((await ofSite()).map((one) => one.id)).toEqual([id]);
    disconnect();
    await runner.shutdown();
    runner = newRunner();
    const work = temporaryFolder();
    const current = () => [{ containerId: id }];
    await sweep({
      ...host,
      workDirectory: work,
      ingress: { ...host.ingress, sites: () => [], lost: () => [], current },
    } as unknown as Host);
    await adoptCommands(host, journal, runner);
    expect(runner.leases().running).toEqual([{ jobId: job.id, attempt: 1 }]);
    expect((await engine.inspectContainer(id))?.running).toBe(true);
    connect(runner);
    runner.receive({ type: "cancel", jobId: job.id, attempt: 1 });
    await reportOf(job);
    await engine.removeContainer(id);
  });

  const jobRun = { signal: new AbortController().signal } as JobRun;

  it("a stop leaves a command alone", async () => {
    const job = commandJob("sleep 2; echo through");
    offer(job);
    await isStarted(job);
    await handlers["site.stop"](host, { siteId, hostnames: [] }, jobRun);
    expect(await reportOf(job)).toMatchObject({ result: { exitCode: 0 } });
    expect(textsOf(job)).toEqual(["through"]);
  });

  it("the site's way to another host leaves a command alone until it has ended", async () => {
    const job = commandJob("sleep 2; echo through");
    offer(job);
    await isStarted(job);
    const tags = { ...host, imageRepository: () => `${repository}-none` };
    const evict = () => handlers["site.evict"](tags, { siteId, accountId }, jobRun);
    await evict();
    expect(await reportOf(job)).toMatchObject({ result: { exitCode: 0 } });
    expect(textsOf(job)).toEqual(["through"]);
    await evict();
    expect(await containers()).toEqual([]);
  });

  it("the site's end ends it, with a reason", async () => {
    const job = commandJob("sleep 60");
    offer(job);
    await isStarted(job);
    const tags = { ...host, imageRepository: () => `${repository}-none` };
    await handlers["site.delete"](tags, { siteId, accountId, hostnames: [] }, jobRun);
    expect(await reportOf(job)).toMatchObject({
      type: "failed",
      error: expect.stringMatching(/^Its container was removed/),
    });
    expect(await containers()).toEqual([]);
  });
});
