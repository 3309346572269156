import * as z from "zod";
import { idOf, Timestamp } from "../api/common.ts";
import { Inventory, Verdicts } from "./inventory.ts";
import { jobArgs, jobKinds, Durations, type Job, type JobKind } from "./jobs.ts";
import { Answer, Question } from "./running.ts";

/**
 * The link between a host's agent and its `host-link` object: JSON text frames, plus the bare texts `ping` (agent)
 * and `pong` (answered by the platform without waking the object).
 *
 * A lease is the pair (jobId, attempt): every offer raises `attempt`, and only the current pair may report.
 */
export const protocolVersion = 1;

/** The agent pings this often, and treats the link as dead after `linkDeadSeconds` without an answer. */
export const pingSeconds = 10;
export const linkDeadSeconds = 30;
/** The control plane takes a host for dead that was silent for so long: two pings and some time for the third. */
export const hostDeadSeconds = 25;
/** Bytes in one frame, either way. */
export const maxFrameBytes = 1024 * 1024;

/** Close codes of our own (RFC 6455 §7.4.2). */
export const closeCodes = {
  superseded: 4001,
  protocolError: 4002,
  hostRemoved: 4003,
  linkDead: 4004,
} as const;

/** So many of them are told at once; the others at the next hello. */
export const maxLostSites = 1000;

const Lease = { jobId: idOf("job"), attempt: z.number().int().positive() };

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const RequestId = z.string().min(1).max(64);
/** A deployment's log, or a command's. */
const LogId = z.union([idOf("deployment"), idOf("command")]);
/** What a site runs. */
const Version = { siteId: idOf("site"), deploymentId: idOf("deployment") };
const DatabaseCrash = { databaseId: idOf("database"), at: Timestamp };

export const phases = ["clone", "build", "start", "swap"] as const;
export type Phase = (typeof phases)[number];

export const AgentLogLine = z.object({
  at: Timestamp,
  stream: z.enum(["system", "stdout", "stderr"]),
  text: z.string().max(8192),
});
export type AgentLogLine = z.infer<typeof AgentLogLine>;

export const FromAgent = z.discriminatedUnion("type", [
  /** First frame after connecting. `running` are the leases still worked on; all others of this host are offered anew. */
  z.object({
    type: z.literal("hello"),
    protocol: z.literal(protocolVersion),
    agentVersion: z.string().max(50),
    facts: z.object({
      cpuCount: z.number().int().positive(),
      memoryMb: z.number().int().positive(),
      diskFreeMb: z.number().int().nonnegative(),
    }),
    running: z.array(z.object(Lease)).max(1000),
    /** Results not yet acknowledged: they follow as `done`/`failed` frames, so they are not offered anew either. */
    finished: z.array(z.object(Lease)).max(1000),
    /** How many jobs it works on at once, commands not counted; left out by an agent that is only given what it asks for. */
    slots: z.number().int().min(0).max(100).optional(),
    /** The host has containers of these sites, and lost which of them serve: each is to be told anew. */
    lostSites: z.array(idOf("site")).max(maxLostSites).optional(),
    /** It says what it has, and can be asked what it keeps aside. */
    inventories: z.boolean().optional(),
  }),
  /**
   * The agent has room for `free` more jobs, and beside them for `freeCommands` commands and `freeShort` of `isShortJob`; left out
   * by an agent that knows no such, whose short jobs count as jobs. Sent after `welcome` and whenever a number changes.
   */
  z.object({
    type: z.literal("ready"),
    free: z.number().int().min(0).max(100),
    freeCommands: z.number().int().min(0).max(100).optional(),
    freeShort: z.number().int().min(0).max(100).optional(),
    /** When a part of its ingress that hung, or had no memory left, was last replaced; left out: not since this agent runs. */
    ingressReplacedAt: Timestamp.optional(),
  }),
  z.object({
    type: z.literal("phase"),
    ...Lease,
    phase: z.enum(phases),
    commit: z.string().max(64).nullable(),
    commitMessage: z.string().max(500).nullable(),
  }),
  /** Lines `firstSeq`… of this attempt, counted from 1; sent again until `logAck`. */
  z.object({
    type: z.literal("log"),
    ...Lease,
    /** Whose log it is: a deployment's, or a command's. */
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
  /** To one question: one answer, or batches of them until `last`. */
  z.object({ type: z.literal("answer"), requestId: RequestId, answer: Answer, last: z.boolean() }),
  /** The version in service kept exiting and was stopped, or cannot be started again. Sent again after every reconnect until `crashAck`. */
  z.object({ type: z.literal("crashed"), ...Version, error: z.string().min(1).max(2000) }),
  /** A database's server kept exiting and was stopped at this time. Sent again until `databaseCrashAck`. */
  z.object({ type: z.literal("databaseCrashed"), ...DatabaseCrash, error: z.string().min(1).max(2000) }),
  /** What databases hold, as last measured. Sent after every connecting and every measuring, so one that is lost is made up for. */
  z.object({
    type: z.literal("diskUse"),
    databases: z
      .array(z.object({ databaseId: idOf("database"), usedMb: z.number().nonnegative() }))
      .max(5000),
  }),
  /** Only to a control plane whose welcome says its time. */
  Inventory,
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
    /** By the control plane's clock, which compares what hosts have; left out by one that does not. */
    now: Timestamp.optional(),
    /** The programs that hosts are to run, served at /install/agent.mjs and responder.mjs; left out where none are. */
    agent: z
      .object({ version: z.string().max(50), sha256: Sha256, responderSha256: Sha256.optional() })
      .optional(),
  }),
  z.object({
    type: z.literal("job"),
    job: JobFrame as unknown as z.ZodType<Job>,
    attempt: z.number().int().positive(),
    /** Jobs of one lane run one at a time, in the order in which they arrive. */
    lane: z.string().min(1).max(64),
    /** The log that it writes; null: none. */
    logId: LogId.nullable(),
    /** Time the agent has for this attempt; a duration, so that clocks need not agree. */
    timeoutMs: z.number().int().positive(),
  }),
  /** The result is recorded: forget it. */
  z.object({ type: z.literal("ack"), ...Lease }),
  /** The lease is over (superseded, deleted, reaped): stop, clean up, report nothing. */
  z.object({ type: z.literal("drop"), ...Lease }),
  /** Stop if the swap has not happened yet, then report `failed` with `cancelled`. */
  z.object({ type: z.literal("cancel"), ...Lease }),
  z.object({ type: z.literal("logAck"), ...Lease, lastSeq: z.number().int().positive() }),
  z.object({ type: z.literal("ask"), requestId: RequestId, question: Question }),
  /** Nobody waits for further answers. */
  z.object({ type: z.literal("endAsk"), requestId: RequestId }),
  z.object({ type: z.literal("crashAck"), ...Version }),
  z.object({ type: z.literal("databaseCrashAck"), ...DatabaseCrash }),
  Verdicts,
]);
export type ToAgent = z.infer<typeof ToAgent>;
