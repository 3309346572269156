import { describe, expect, it } from "vitest";
import { jobKinds, jobResults, type Job, type JobKind } from "../../protocol/agent/jobs.ts";
import { FromAgent, ToAgent } from "../../protocol/agent/messages.ts";
import { formatId, type IdKind } from "../../protocol/ids.ts";
import { offerOf } from "../support/offer.ts";

const id = <K extends IdKind>(kind: K) => formatId(kind, 1, new Uint8Array(10));
const lease = { jobId: id("job"), attempt: 1 };
const version = { siteId: id("site"), deploymentId: id("deployment") };
const outage = { databaseId: id("database"), at: "2026-01-01T00:00:00.000Z" };

const credit = { type: "streamCredit", streamId: 1, bytes: 65_536 } as const;

/** One of each; a message without an example does not compile. */
const fromAgent: { [T in FromAgent["type"]]: Extract<FromAgent, { type: T }> } = {
  hello: {
    type: "hello",
    protocol: 1,
    agentVersion: "1.0.0",
    facts: { cpuCount: 2, memoryMb: 4096 },
    running: [lease],
    finished: [],
    slots: 1,
    lostSites: [],
  },
  failingChecks: { type: "failingChecks", sites: [{ siteId: id("site"), detail: "It answers 500." }] },
  condition: {
    type: "condition",
    disk: { freeMb: 0, neededMb: 2048 },
    ingressProblem: "Port 80 is in use.",
    updateProblem: null,
    machineProblems: ["Its clock is 12 minutes behind the service's."],
  },
  streamOpened: { type: "streamOpened", streamId: 4_294_967_295 },
  streamCredit: credit,
  streamClosed: { type: "streamClosed", streamId: 1, error: null, exitCode: 0 },
  streams: { type: "streams", open: [0, 1] },
  ready: { type: "ready", free: 0, freeCommands: 0, freeShort: 0 },
  phase: { type: "phase", ...lease, phase: "swap", commit: null, commitMessage: null },
  log: {
    type: "log",
    ...lease,
    deploymentId: id("deployment"),
    firstSeq: 1,
    lines: [{ at: "2026-01-01T00:00:00.000Z", stream: "stdout", text: "" }],
  },
  done: { type: "done", ...lease, result: {} },
  failed: { type: "failed", ...lease, error: "It failed.", cancelled: false, durations: null },
  answer: {
    type: "answer",
    requestId: "r1",
    answer: {
      kind: "logs",
      lines: [{ at: "2026-01-01T00:00:00.123456789Z", stream: "stderr", text: "a" }],
    },
    last: false,
  },
  crashed: { type: "crashed", ...version, error: "It exited with 1 five times." },
  databaseCrashed: { type: "databaseCrashed", ...outage, error: "It exited with 1 five times." },
  inventory: {
    type: "inventory",
    asOf: outage.at,
    after: null,
    upTo: null,
    sites: [
      {
        id: id("site"),
        serving: [id("deployment")],
        unrouted: [{ containerId: "c".repeat(64), deploymentId: null }],
        memoryMb: 256,
      },
    ],
    databases: [{ id: id("database"), running: true, out: false, volumes: [null, id("job")], memoryMb: 256 }],
  },
  limitNear: {
    type: "limitNear",
    resourceId: id("site"),
    of: "memory",
    detail: "The app used more memory than its pack has.",
  },
  unhealthy: { type: "unhealthy", siteId: id("site"), detail: "The health check / answered 500." },
  diskUse: { type: "diskUse", databases: [{ databaseId: id("database"), usedMb: 0.5 }] },
};

const run = {
  siteId: id("site"),
  accountId: id("account"),
  hostnames: ["a.localhost"],
  port: 3000,
  startCommand: null,
  healthCheckPath: "/health",
  startTimeoutSeconds: 60,
  env: [{ key: "A", value: "", scope: "both" as const, secret: true }],
  limits: { memoryMb: 256, cpuMilli: 250, pids: 128 },
  replicas: 1,
  volumes: [],
};
const database = {
  databaseId: id("database"),
  accountId: id("account"),
  type: "postgresql" as const,
  image: "postgres:17",
  hostname: "data.internal",
  databaseName: "data_0123abcd",
  adminPassword: "secret",
  logins: [{ username: "data_0123abcd_1", password: "secret" }],
  limits: { memoryMb: 256, cpuMilli: 250, pids: 128 },
};
const ofDatabase = { databaseId: id("database"), accountId: id("account") };
const backup = {
  backupId: id("backup"),
  attempt: 1,
  databaseName: "data_0123abcd",
  sizeBytes: 7,
  sha256: "a".repeat(64),
  fingerprintSha256: "b".repeat(64),
};
const { databaseName: _, ...storedVolume } = backup;
const jobs: { [K in JobKind]: Job<K> } = {
  "database.backup": {
    id: id("job"),
    kind: "database.backup",
    args: { database, backupId: id("backup"), attempt: 1, serving: true },
  },
  "database.verify": { id: id("job"), kind: "database.verify", args: { like: database, backup } },
  "database.restore": {
    id: id("job"),
    kind: "database.restore",
    args: { database: { ...database, volume: id("job") }, backup, serving: true },
  },
  "volume.backup": {
    id: id("job"),
    kind: "volume.backup",
    args: { siteId: id("site"), volume: "data", backupId: id("backup"), attempt: 1 },
  },
  "volume.verify": { id: id("job"), kind: "volume.verify", args: { backup: storedVolume } },
  "volume.restore": {
    id: id("job"),
    kind: "volume.restore",
    args: {
      siteId: id("site"),
      accountId: id("account"),
      volume: "data",
      backup: storedVolume,
      diskGb: 2,
    },
  },
  "site.deploy": {
    id: id("job"),
    kind: "site.deploy",
    args: {
      run,
      deploymentId: id("deployment"),
      source: { type: "git", address: "git.example/a/b", branch: null, token: null },
      options: {},
      rootDir: null,
      dockerfilePath: "docker/Dockerfile",
      buildCommand: "npm run build",
      releaseCommand: "npx prisma migrate deploy",
      buildTimeoutSeconds: 900,
      rebuild: false,
      kept: [
        {
          deploymentId: id("deployment"),
          number: 1,
          commit: "a".repeat(40),
          commitMessage: "First",
          imageDigest: `sha256:${"b".repeat(64)}`,
          imageId: `sha256:${"b".repeat(64)}`,
          buildKey: null,
        },
      ],
    },
  },
  "site.start": { id: id("job"), kind: "site.start", args: { run, deploymentId: id("deployment") } },
  "site.stop": { id: id("job"), kind: "site.stop", args: { siteId: id("site"), hostnames: [] } },
  "site.restart": { id: id("job"), kind: "site.restart", args: { run, deploymentId: id("deployment") } },
  "site.route": { id: id("job"), kind: "site.route", args: { siteId: id("site"), hostnames: ["a.example"] } },
  "site.delete": {
    id: id("job"),
    kind: "site.delete",
    args: { siteId: id("site"), accountId: id("account"), hostnames: ["a.localhost"] },
  },
  "site.command": {
    id: id("job"),
    kind: "site.command",
    args: {
      run,
      deploymentId: id("deployment"),
      commandId: id("command"),
      command: "npm run migrate",
      timeoutSeconds: 600,
    },
  },
  "site.evict": {
    id: id("job"),
    kind: "site.evict",
    args: { siteId: id("site"), accountId: id("account") },
  },
  "database.provision": { id: id("job"), kind: "database.provision", args: { database } },
  "database.start": { id: id("job"), kind: "database.start", args: { database } },
  "database.restart": { id: id("job"), kind: "database.restart", args: { database } },
  "database.stop": { id: id("job"), kind: "database.stop", args: ofDatabase },
  "database.rotate": { id: id("job"), kind: "database.rotate", args: { database } },
  "database.expose": { id: id("job"), kind: "database.expose", args: { database, generation: 1 } },
  "database.delete": { id: id("job"), kind: "database.delete", args: ofDatabase },
};
const toAgent: { [T in ToAgent["type"]]: Extract<ToAgent, { type: T }> } = {
  welcome: { type: "welcome", epoch: 1, now: "2026-01-01T00:00:00.000Z" },
  job: offerOf(jobs["site.stop"]),
  ack: { type: "ack", ...lease },
  drop: { type: "drop", ...lease },
  cancel: { type: "cancel", ...lease },
  logAck: { type: "logAck", ...lease, lastSeq: 1 },
  ask: {
    type: "ask",
    requestId: "r1",
    question: { kind: "logs", siteId: id("site"), tail: 100, after: null, follow: true, masks: [] },
  },
  endAsk: { type: "endAsk", requestId: "r1" },
  answerAck: { type: "answerAck", requestId: "r1" },
  crashAck: { type: "crashAck", ...version },
  verdicts: {
    type: "verdicts",
    setAside: [id("site"), id("database")],
    retire: [{ siteId: id("site"), containerIds: ["c".repeat(64)] }],
  },
  databaseCrashAck: { type: "databaseCrashAck", ...outage },
  openStream: {
    type: "openStream",
    streamId: 1,
    target: {
      kind: "terminal",
      siteId: id("site"),
      command: null,
      terminal: "xterm-256color",
      columns: 80,
      rows: 24,
    },
  },
  peers: {
    type: "peers",
    certificate: "-----BEGIN CERTIFICATE-----",
    authority: "-----BEGIN CERTIFICATE-----",
    forwards: [
      {
        siteId: id("site"),
        hostnames: ["shop.sites.example.com"],
        hostId: id("host"),
        address: "192.0.2.1",
        port: 5302,
      },
    ],
    from: [id("host")],
    sites: [id("site")],
    hosts: [id("host")],
  },
  streamCredit: credit,
  resizeStream: { type: "resizeStream", streamId: 1, columns: 1, rows: 1000 },
  closeStream: { type: "closeStream", streamId: 1 },
  certificates: {
    type: "certificates",
    certificates: [
      {
        name: "*.sites.example.com",
        chain: "-----BEGIN CERTIFICATE-----",
        key: "-----BEGIN PRIVATE KEY-----",
        notAfter: "2026-01-01T00:00:00.000Z",
      },
    ],
    awaited: { name: "*.sites.example.com", since: "2026-01-01T00:00:00.000Z", own: 20 },
  },
};

const travelled = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe("every message arrives as it was sent", () => {
  it.each(Object.values(fromAgent))("from the agent: $type", (message) =>
    expect(FromAgent.parse(travelled(message))).toEqual(message),
  );
  it.each(Object.values(toAgent))("to the agent: $type", (message) =>
    expect(ToAgent.parse(travelled(message))).toEqual(message),
  );
  it.each(jobKinds)("the job %s", (kind) => {
    const offer = offerOf(jobs[kind]);
    expect(ToAgent.parse(travelled(offer))).toEqual(offer);
  });
});

describe("a message is refused", () => {
  const messages = [
    ...Object.values(fromAgent).map((message) => ({ schema: FromAgent, message })),
    ...[...Object.values(toAgent), ...Object.values(jobs).map((job) => offerOf(job))].map((message) => ({
      schema: ToAgent,
      message,
    })),
  ];
  it.each(messages)("without any one of its fields: $message.type", ({ schema, message }) => {
    // Control planes of before send no `awaited`, agents no `updateProblem` or `machineProblems`.
    for (const field of Object.keys(message).filter(
      (name) => !["result", "awaited", "updateProblem", "machineProblems"].includes(name),
    ))
      expect([field, schema.safeParse({ ...message, [field]: undefined }).success]).toEqual([field, false]);
  });

  it("of a lease whose job is another kind of id, or whose attempt is none", () => {
    for (const wrong of [{ jobId: id("site") }, { jobId: "job_../../x" }, { attempt: 0 }, { attempt: 1.5 }])
      expect(ToAgent.safeParse({ ...toAgent.drop, ...wrong }).success, JSON.stringify(wrong)).toBe(false);
  });

  it("of a job whose arguments are another kind's", () => {
    expect(
      ToAgent.safeParse({ ...toAgent.job, job: { ...jobs["site.stop"], kind: "site.deploy" } }).success,
    ).toBe(false);
  });

  it("of a job with hostile values anywhere in it", () => {
    const deploy = jobs["site.deploy"];
    for (const args of [
      { source: { type: "git", address: "--upload-pack=x/a/b", branch: null, token: null } },
      { source: { type: "git", address: "git.example/a/b", branch: "--upload-pack=x", token: null } },
      { source: { type: "image", reference: "--privileged", login: null } },
      { source: { type: "kept", deploymentId: "latest" } },
      { rootDir: "../../etc" },
      { dockerfilePath: "/etc/passwd" },
      { run: { ...run, port: 0 } },
      { run: { ...run, replicas: 11 } },
      { run: { ...run, volumes: [{ name: "data", mountPath: "/proc" }] } },
      { run: { ...run, volumes: [{ name: "/", mountPath: "/data" }] } },
      { run: { ...run, hostnames: [] } },
      { run: { ...run, limits: { ...run.limits, memoryMb: -1 } } },
    ])
      expect(
        ToAgent.safeParse(offerOf({ ...deploy, args: { ...deploy.args, ...args } } as Job)).success,
        JSON.stringify(args),
      ).toBe(false);
  });

  it("larger than its bounds: a line, a batch, an error", () => {
    const line = { at: "2026-01-01T00:00:00Z", stream: "stdout", text: "" };
    for (const message of [
      { ...fromAgent.log, lines: [{ ...line, text: "x".repeat(8193) }] },
      { ...fromAgent.log, lines: Array.from({ length: 1001 }, () => line) },
      { ...fromAgent.log, lines: [] },
      { ...fromAgent.failed, error: "x".repeat(2001) },
      { ...fromAgent.failed, error: "" },
    ])
      expect(FromAgent.safeParse(message).success).toBe(false);
  });
});

it("every kind of job has a result, and a deployment's names its image", () => {
  expect(Object.keys(jobResults).sort()).toEqual([...jobKinds].sort());
  expect(jobResults["site.deploy"].safeParse({}).success).toBe(false);
});
