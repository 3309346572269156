import { deploymentSteps } from "../deployment-steps.ts";
import * as z from "zod";
import { idOf, Timestamp } from "../api/common.ts";
import { AwaitedCertificate, Certificate } from "./certificates.ts";
import { Inventory, Verdicts } from "./inventory.ts";
import { jobArgs, jobKinds, Durations, type Job, type JobKind } from "./jobs.ts";
import { windowBytes } from "../api/streams.ts";
import { Answer, Question } from "./running.ts";

/**
 * The link between a host's agent and its `host-link` object: JSON text messages, plus the bare texts `ping` (agent)
 * and `pong` (answered by the platform without waking the object), and binary messages: bytes of streams. A lease is
 * the pair (jobId, attempt): every offer increments `attempt`, and only the current pair may report.
 */
export const protocolVersion = 1;

/** The agent pings at this interval and considers the link dead after `linkDeadSeconds` without an answer. */
export const pingSeconds = 10;
export const linkDeadSeconds = 30;
/** The control plane considers a host dead after this silence: two pings and a margin for the third. */
export const hostDeadSeconds = 25;
/** The maximum size of one message in either direction. */
export const maxFrameBytes = 1024 * 1024;

/** In place of an answer that is longer, or none of the schema's: its question alone ends. */
export const unfitAnswer = {
  kind: "refused",
  error:
    "The host's answer was too large to be sent, or not of the expected form: ask for less, or ask the operator, who finds the reason in a log.",
} as const satisfies Answer;

/** Streams that a host has open at once. */
export const maxStreams = 40;

/**
 * Names the process of an agent when it connects: one that connects anew is another only if it started anew. Agents of before
 * 1 December 2026 send none.
 */
export const instanceHeader = "X-Berth-Agent";

/** Application-specific close codes (RFC 6455 §7.4.2). */
export const closeCodes = {
  superseded: 4001,
  protocolError: 4002,
  hostRemoved: 4003,
  linkDead: 4004,
} as const;

/** The maximum number per hello; the others follow in the next one. */
export const maxLostSites = 1000;

const Lease = { jobId: idOf("job"), attempt: z.number().int().positive() };

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const RequestId = z.string().min(1).max(64);
/** The log of a deployment or of a command. */
const LogId = z.union([idOf("deployment"), idOf("command")]);
/** The deployment that a site runs. */
const Version = { siteId: idOf("site"), deploymentId: idOf("deployment") };
const DatabaseCrash = { databaseId: idOf("database"), at: Timestamp };

/** Chosen at random by the control plane, so that it never meets one that an earlier instance of it left behind. */
const StreamId = z.number().int().min(0).max(0xffff_ffff);
const StreamCredit = z.object({
  type: z.literal("streamCredit"),
  streamId: StreamId,
  bytes: z.number().int().positive().max(windowBytes),
});

/** What a stream's bytes go to and come from. */
export const StreamTarget = z.discriminatedUnion("kind", [
  /** The database's server, over TCP. */
  z.object({
    kind: z.literal("database"),
    databaseId: idOf("database"),
    port: z.number().int().min(1).max(65_535),
  }),
  /** A program in the first container in service, with a terminal. */
  z.object({
    kind: z.literal("terminal"),
    siteId: idOf("site"),
    /** One line for sh; null: a shell. */
    command: z.string().min(1).max(4096).nullable(),
    terminal: z.string().regex(/^[\w.+-]{1,40}$/),
    columns: z.number().int().min(1).max(1000),
    rows: z.number().int().min(1).max(1000),
  }),
]);
export type StreamTarget = z.infer<typeof StreamTarget>;

export const AgentLogLine = z.object({
  at: Timestamp,
  stream: z.enum(["system", "stdout", "stderr"]),
  text: z.string().max(8192),
  /** Of a deployment: what it was written in. */
  step: z.enum(deploymentSteps).optional(),
});
export type AgentLogLine = z.infer<typeof AgentLogLine>;

const FailingCheck = z.object({ siteId: idOf("site"), detail: z.string().min(1).max(2000) });
export type FailingCheck = z.infer<typeof FailingCheck>;
/** Of the sites with failing checks, how many the control plane knows of. */
export const maxFailingChecks = 200;

export const FromAgent = z.discriminatedUnion("type", [
  /**
   * The first message after connecting. `running` are the leases still in progress; all other leases of this host are
   * offered again.
   */
  z.object({
    type: z.literal("hello"),
    protocol: z.literal(protocolVersion),
    agentVersion: z.string().max(50),
    facts: z.object({
      cpuCount: z.number().int().positive(),
      memoryMb: z.number().int().positive(),
      /** Not read: services of before 29 November 2026 refuse a hello without it, and only their welcome brings their agent back. */
      diskFreeMb: z.number().int().nonnegative().optional(),
    }),
    running: z.array(z.object(Lease)).max(1000),
    /**
     * Results not yet acknowledged. They follow as `done`/`failed` messages, so these leases are not offered again
     * either.
     */
    finished: z.array(z.object(Lease)).max(1000),
    /**
     * How other hosts reach its ingress for sites that have moved here, and whom they meet there: SubjectPublicKeyInfo (RFC 5280)
     * of a P-256 key, base64.
     */
    peer: z.object({ port: z.number().int().min(1).max(65_535), publicKey: z.string().max(200) }).optional(),
    /** How many jobs it runs at once, not counting commands. */
    slots: z.number().int().min(0).max(100),
    /**
     * The host has containers of these sites but no longer knows which deployment serves, and needs their routes
     * again.
     */
    lostSites: z.array(idOf("site")).max(maxLostSites),
  }),
  /**
   * The agent has `free` job slots, plus `freeCommands` for commands and `freeShort` for jobs whose slot is `short`.
   * Sent after `welcome` and whenever a number changes.
   */
  z.object({
    type: z.literal("ready"),
    free: z.number().int().min(0).max(100),
    freeCommands: z.number().int().min(0).max(100),
    freeShort: z.number().int().min(0).max(100),
    /** Replaces the hello's: 0 if the agent takes no jobs, because it is to be replaced or its engine does not answer. */
    slots: z.number().int().min(0).max(100).optional(),
    /** When a hung or out-of-memory part of its ingress was last replaced; omitted: not since the agent started. */
    ingressReplacedAt: Timestamp.optional(),
  }),
  z.object({
    type: z.literal("phase"),
    ...Lease,
    phase: z.enum(deploymentSteps),
    commit: z.string().max(64).nullable(),
    commitMessage: z.string().max(500).nullable(),
  }),
  /** Lines from `firstSeq` of this attempt, counted from 1; sent again until `logAck`. */
  z.object({
    type: z.literal("log"),
    ...Lease,
    /** The deployment or command that the log belongs to. */
    deploymentId: LogId,
    firstSeq: z.number().int().positive(),
    lines: z.array(AgentLogLine).min(1).max(1000),
  }),
  /** Sent again after every reconnect until `ack`. `result` is parsed with `jobResults[kind]`. */
  z.object({ type: z.literal("done"), ...Lease, result: z.unknown() }),
  z.object({
    type: z.literal("failed"),
    ...Lease,
    /** One plain sentence: what happened and what to do. */
    error: z.string().min(1).max(2000),
    cancelled: z.boolean(),
    durations: Durations.nullable(),
  }),
  /** Each question gets one answer, or batches of answers until `last`. `ack`: an `answerAck` is waited for. */
  z.object({
    type: z.literal("answer"),
    requestId: RequestId,
    answer: Answer,
    last: z.boolean(),
    ack: z.boolean().optional(),
  }),
  /**
   * The version in service kept exiting and was stopped, or is not started again. Sent again after every reconnect
   * until `crashAck`.
   */
  z.object({ type: z.literal("crashed"), ...Version, error: z.string().min(1).max(2000) }),
  /** A database's server kept exiting and was stopped at this time. Sent again until `databaseCrashAck`. */
  z.object({ type: z.literal("databaseCrashed"), ...DatabaseCrash, error: z.string().min(1).max(2000) }),
  /** What agents sent before `failingChecks`: a health check failed several times in a row. */
  z.object({ type: z.literal("unhealthy"), siteId: idOf("site"), detail: z.string().min(1).max(2000) }),
  /** All sites whose health check fails now. Sent after every connection and change, so a lost message does no harm. */
  z.object({ type: z.literal("failingChecks"), sites: z.array(FailingCheck).max(maxFailingChecks) }),
  /** A site or database is near or beyond its pack's limit. Once an hour at most; may be lost with the agent. */
  z.object({
    type: z.literal("limitNear"),
    resourceId: z.union([idOf("site"), idOf("database")]),
    of: z.enum(["memory", "disk"]),
    detail: z.string().min(1).max(2000),
  }),
  /**
   * The last measured disk usage of databases. Sent after every connection and measurement, so a lost message does no
   * harm.
   */
  z.object({
    type: z.literal("diskUse"),
    databases: z
      .array(z.object({ databaseId: idOf("database"), usedMb: z.number().nonnegative() }))
      .max(5000),
  }),
  /** Of the host itself. Sent after every connection and change, so a lost message does no harm. */
  z.object({
    type: z.literal("condition"),
    /** Of the engine's disk with the least room, and what must be free for a deployment to begin; null: the agent cannot see it. */
    disk: z
      .object({ freeMb: z.number().int().nonnegative(), neededMb: z.number().int().nonnegative() })
      .nullable(),
    /** Why the ingress does not run, with what to do; null: it does, or nothing is known. */
    ingressProblem: z.string().min(1).max(2000).nullable(),
    /** Why its last update failed, with what to do; null: none did. Earlier agents do not say. */
    updateProblem: z.string().min(1).max(2000).nullable().default(null),
    /** What is wrong with the machine, with what to do: its engine, its clock, or a program that is old. Earlier agents do not say. */
    machineProblems: z.array(z.string().min(1).max(2000)).max(10).default([]),
  }),
  Inventory,
  /** The answer to `openStream`; its bytes follow as binary messages (`stream-frames.ts`). */
  z.object({ type: z.literal("streamOpened"), streamId: StreamId }),
  /** Bytes were written to where they go: the control plane may send that much more. */
  StreamCredit,
  /** The last message of a stream, after its bytes. `error`: why it could not be opened, or broke. */
  z.object({
    type: z.literal("streamClosed"),
    streamId: StreamId,
    error: z.string().min(1).max(2000).nullable(),
    exitCode: z.number().int().nullable(),
  }),
  /** All open streams, now and then: those that the control plane does not know are closed. */
  z.object({ type: z.literal("streams"), open: z.array(StreamId).max(maxStreams) }),
]);
export type FromAgent = z.infer<typeof FromAgent>;

const jobFrame = <K extends JobKind>(kind: K) =>
  z.object({ id: idOf("job"), kind: z.literal(kind), args: jobArgs[kind] });
const JobFrame = z.discriminatedUnion(
  "kind",
  jobKinds.map((kind) => jobFrame(kind)) as unknown as [ReturnType<typeof jobFrame>],
);

export const ToAgent = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("welcome"),
    epoch: z.number().int().positive(),
    /** The control plane's clock, to which inventories relate. */
    now: Timestamp,
    /**
     * The programs that hosts should run, served at /install/agent.mjs and responder.mjs; omitted if there are none.
     */
    agent: z.object({ version: z.string().max(50), sha256: Sha256, responderSha256: Sha256 }).optional(),
  }),
  z.object({
    type: z.literal("job"),
    job: JobFrame as unknown as z.ZodType<Job>,
    attempt: z.number().int().positive(),
    /** Jobs of one lane run one at a time, in the order in which they arrive. */
    lane: z.string().min(1).max(64),
    /** The log that it writes; null: none. */
    logId: LogId.nullable(),
    /** The time limit of this attempt, as a duration because clocks may differ. */
    timeoutMs: z.number().int().positive(),
  }),
  /** The result is recorded and can be discarded. */
  z.object({ type: z.literal("ack"), ...Lease }),
  /** The lease has ended (superseded, deleted, timed out): stop, clean up, report nothing. */
  z.object({ type: z.literal("drop"), ...Lease }),
  /** Stop unless it has finished, then report `failed` with `cancelled`. A version on probation is taken out of service. */
  z.object({ type: z.literal("cancel"), ...Lease }),
  z.object({ type: z.literal("logAck"), ...Lease, lastSeq: z.number().int().positive() }),
  z.object({ type: z.literal("ask"), requestId: RequestId, question: Question }),
  /** Further answers are no longer needed. */
  z.object({ type: z.literal("endAsk"), requestId: RequestId }),
  /** The reader has taken one answer with `ack`. */
  z.object({ type: z.literal("answerAck"), requestId: RequestId }),
  z.object({ type: z.literal("crashAck"), ...Version }),
  z.object({ type: z.literal("databaseCrashAck"), ...DatabaseCrash }),
  /**
   * After each welcome and change: all wildcard certificates that the host serves, and those of custom domains that come to it with
   * their site, which it renews itself from then on. `awaited`: a wildcard that is being issued, so that few names below it need a
   * certificate of their own until then.
   */
  z.object({
    type: z.literal("certificates"),
    certificates: z.array(Certificate).max(100),
    // Control planes of before send none.
    awaited: AwaitedCertificate.nullable().default(null),
  }),
  /**
   * What it is to the other hosts, if its hello has `peer`; after each welcome and change. `certificate` is of its key, `authority`
   * of the issuer, both PEM; the common name of a certificate is the host's id.
   */
  z.object({
    type: z.literal("peers"),
    certificate: z.string().min(1).max(4096),
    authority: z.string().min(1).max(4096),
    /** All sites that have left it and whose visitors may still come to it: their requests go there. */
    forwards: z
      .array(
        z.object({
          siteId: idOf("site"),
          hostnames: z.array(z.string()).min(1),
          hostId: idOf("host"),
          address: z.union([z.ipv4(), z.ipv6()]),
          port: z.number().int().min(1).max(65_535),
        }),
      )
      .max(1000),
    /** Hosts that send it such requests now, and the sites that they may ask for. */
    from: z.array(idOf("host")).max(1000),
    sites: z.array(idOf("site")).max(1000),
    /** All hosts of the installation: from others no connection stays open. */
    hosts: z.array(idOf("host")).max(10_000),
  }),
  Verdicts,
  /** Answered with `streamOpened` or `streamClosed`. */
  z.object({ type: z.literal("openStream"), streamId: StreamId, target: StreamTarget }),
  /** Bytes were consumed by the client: the agent may send that much more. */
  StreamCredit,
  z.object({
    type: z.literal("resizeStream"),
    streamId: StreamId,
    columns: z.number().int().min(1).max(1000),
    rows: z.number().int().min(1).max(1000),
  }),
  /** The client is gone: write what has arrived, then end it. */
  z.object({ type: z.literal("closeStream"), streamId: StreamId }),
]);
export type ToAgent = z.infer<typeof ToAgent>;

const MessageType = z.object({ type: z.string().regex(/^\w{1,40}$/) });
const typesOf = (messages: readonly { shape: { type: z.ZodLiteral<string> } }[]): Set<string> =>
  new Set(messages.map(({ shape }) => shape.type.value));
const types = { agent: typesOf(FromAgent.options), controlPlane: typesOf(ToAgent.options) };

/** Whether only another version has messages of its type. It is skipped: the connection carries all that tenants have open on the host. */
export function isOfOtherVersion(message: unknown, from: keyof typeof types): boolean {
  const { data } = MessageType.safeParse(message);
  return data !== undefined && !types[from].has(data.type);
}
