import type { SQL } from "drizzle-orm";
import type { DrizzleD1Database } from "drizzle-orm/d1";
import type { StreamTarget } from "../protocol/agent/messages.ts";
import type { Answer, Question } from "../protocol/agent/running.ts";
import type { ChatReply } from "../protocol/api/chat.ts";
import type { History, PendingCall, Refused, Sent } from "./objects/rpc.ts";
import type { DevicePolled } from "../protocol/api/device.ts";
import type { Operation } from "../protocol/api/operations.ts";
import type { LogLine } from "../protocol/api/deployments.ts";
import type { Id, IdKind } from "../protocol/ids.ts";
import type { ActivityActor } from "../protocol/states.ts";
import type { Acme } from "./adapters/acme.ts";
import type { Zone } from "./adapters/dns-zone/zone.ts";
import type { Payments } from "./adapters/payments/payments.ts";
import type { Dns } from "./adapters/dns.ts";
import type { SecretBox } from "./adapters/secret-box.ts";
import type { BackupStore } from "./adapters/storage.ts";
import type { Fetched } from "./adapters/web.ts";
import type { Actor, Credential, Reader, Followed } from "./actor.ts";
import type { Config } from "./config.ts";
import type { Preparable } from "./db/prepared.ts";
import type { HostPrograms } from "./domain/install-script.ts";
import type { Lease, Offer } from "./domain/lease.ts";

export type { Actor, Credential, Followed, Reader, Suspended } from "./actor.ts";

export type Db = DrizzleD1Database;

/** All that a service may use: the outside world, time, ids and randomness included. */
export type Ctx = {
  actor: Actor;
  /** Of the request that is answered; null for timers and links to hosts. */
  requestId: string | null;
  db: Db;
  /** A raw statement for `db.batch`, where drizzle-orm's own `db.run` cannot carry parameters. */
  statement(query: SQL): ReturnType<Db["run"]>;
  /**
   * A query or raw statement of the hot path, with `sql.placeholder` for what changes: drizzle-orm takes 0.1 ms to write the
   * SQL of a wide table, so it is written once per isolate. `query` must be the same function or object each time.
   */
  hot<Query extends Preparable>(query: (db: Db) => Query, values: Record<string, unknown>): Query;
  hot(query: SQL, values: Record<string, unknown>): ReturnType<Db["run"]>;
  config: Config;
  now(): Date;
  random(bytes: number): Uint8Array;
  newId<K extends IdKind>(kind: K): Id<K>;
  /** What one statement of a batch leaves for the others to find: unique to this batch. */
  newMark(): string;
  secrets: SecretBox;
  payments: Payments;
  /** The zone that follows the sites; null: the operator maintains it. */
  zone: Zone | null;
  acme: Acme;
  dns: Dns;
  /** Requests an address of a customer's site. @throws when it gives no answer */
  fetchOnce(url: string): Promise<Fetched>;
  /** Posts JSON to an address that a customer named. @returns the status @throws when it gives no answer */
  postOnce(url: string, headers: Record<string, string>, body: string): Promise<number>;
  backups: BackupStore;
  /** The programs that hosts are to run; null if the Worker was deployed without them. */
  hostPrograms(): Promise<HostPrograms | null>;
  hosts: HostHints;
  questions: HostQuestions;
  guards: KeyGuards;
  logs: DeploymentLogs;
  events: AccountEvents;
  devices: DeviceCodes;
  conversations: Conversations;
  pendingCalls: PendingCalls;
  /** Counts one use against a limit of the account. @throws AppError rate_limited */
  takeFrom(limit: AccountLimit, accountId: Id<"account">): Promise<void>;
  /** Let a promise outlive the answer. */
  defer(work: Promise<unknown>): void;
};

type AccountLimit = Exclude<NonNullable<Operation["limit"]>, "chat">;

/** Hints to the hosts' links. The jobs table is the truth: a lost hint costs latency, never a job. */
type HostHints = {
  /** There is work; null: for any host. */
  wake(hostId: Id<"host"> | null): void;
  /** It was leased to this host. */
  deliver(hostId: Id<"host">, offer: Offer): void;
  /** It may have leases that it was never told of. */
  remind(hostId: Id<"host">): void;
  /** Leases of this host were ended or are to be cancelled: tell the agent. */
  revise(hostId: Id<"host">, lease: Lease, verdict: "drop" | "cancel"): void;
  /** The site or database is not there any more: who follows its log there is let go, and may go on where it is. */
  letGo(hostId: Id<"host">, id: Id<"site" | "database">): void;
  /** There are other certificates: its agent receives them. @throws if the host cannot be reached now */
  certify(hostId: Id<"host">): Promise<void>;
  /** Sites have moved from or to it, or hosts were removed: its agent is told what it is to the others. */
  tellPeers(hostId: Id<"host">): void;
  /** The host is removed: its agent is told, and not let in again. */
  disconnect(hostId: Id<"host">): void;
};

/** What a host knows of its running sites; `refused` says why it cannot be asked now. */
type HostQuestions = {
  ask(hostId: Id<"host">, question: Question): Promise<Answer>;
  /** The log as server-sent events, for as long as the reader's key or session works. */
  follow(
    hostId: Id<"host">,
    question: Followed,
    reader: Reader,
  ): Promise<ReadableStream<Uint8Array> | Extract<Answer, { kind: "refused" }>>;
  /** The client's end of a stream to a database or a terminal, for as long as the reader's key or session works. */
  connect(
    hostId: Id<"host">,
    target: StreamTarget,
    reader: Reader,
  ): Promise<WebSocket | Extract<Answer, { kind: "refused" }>>;
};

type KeyGuards = {
  revoke(keyHash: string): Promise<void>;
  /** The key's account has changed. */
  forget(keyHash: string): Promise<void>;
};

/** Of deployments and of commands. */
type DeploymentLogs = {
  /** Closes the log with a last line; watchers see the end. */
  finish(id: Id<"deployment" | "command">, line: string): void;
  remove(id: Id<"deployment" | "command">): void;
  read(id: Id<"deployment" | "command">, afterSeq: number, limit: number): Promise<LogLine[]>;
  /** As server-sent events; null: too many follow it already. */
  follow(
    id: Id<"deployment" | "command">,
    afterSeq: number,
    reader: Reader,
    isOver: boolean,
  ): Promise<ReadableStream<Uint8Array> | null>;
};

/** The changes of an account as server-sent events; null: too many follow them already. */
type AccountEvents = {
  follow(
    accountId: Id<"account">,
    reader: Reader,
    afterSeq: number | null,
  ): Promise<ReadableStream<Uint8Array> | null>;
};

export type { Refused, Sent };
type Conversations = {
  send(sent: Sent): Promise<{ reply: ChatReply } | Refused>;
  stream(sent: Sent): Promise<{ events: ReadableStream<Uint8Array> } | Refused>;
  resume(
    id: Id<"conversation">,
    accountId: string,
    afterSeq: number,
  ): Promise<{ events: ReadableStream<Uint8Array> } | Refused>;
  history(id: Id<"conversation">, accountId: string): Promise<History | Refused>;
  remove(id: Id<"conversation">): Promise<void>;
};

/** Tool calls that wait for a person outside a conversation, by their ids, which only who was told knows. */
type PendingCalls = {
  keep(id: string, call: PendingCall): Promise<void>;
  read(id: string, accountId: Id<"account">): Promise<PendingCall | null>;
  take(id: string, accountId: Id<"account">, as: "taken" | "declined"): Promise<PendingCall | null>;
  settle(id: string, outcome: string): Promise<void>;
  outcome(id: string, accountId: Id<"account">): Promise<string | null>;
};

type DeviceCodes = {
  /** false: this user code is in use, take another. */
  start(
    userCode: string,
    deviceHash: string,
    client: { name: string; address: string; origin: "device" | "mcp" },
  ): Promise<boolean>;
  /** null: nothing waits here (any more); a number: too many polls, wait so many seconds. */
  poll(userCode: string, deviceHash: string): Promise<DevicePolled | number | null>;
};

/** The account that acts. Links, hosts and timers have none: their verbs never ask. */
export function accountOf(ctx: Ctx): Id<"account"> {
  const { actor } = ctx;
  if ("accountId" in actor) return actor.accountId;
  throw new Error(`A ${actor.type} has no account`);
}

/** @throws Error for a link, a host or a timer */
export const readerOf = (ctx: Ctx): Reader => ({ accountId: accountOf(ctx), credential: credentialOf(ctx) });

/** The key or the session that acts. */
export function credentialOf({ actor }: Ctx): Credential {
  if (actor.type === "key") return actor.keyId;
  if (actor.type === "session") return actor.sessionId;
  if (actor.type === "assistant" || actor.type === "viewer") return actor.credential;
  throw new Error(`A ${actor.type} came with no credential`);
}

/** What began a deployment, command or backup that somebody asked for. */
export const triggerOf = ({ actor }: Ctx): "api" | "chat" => (actor.type === "assistant" ? "chat" : "api");

/** The actor as the audit log and other records name it. */
export type Author = { actor: ActivityActor; actorId: string | null };
export function authorOf({ actor }: Ctx): Author {
  switch (actor.type) {
    case "key":
      return { actor: "key", actorId: actor.keyId };
    case "session":
      return { actor: "session", actorId: actor.sessionId };
    case "assistant":
      return { actor: "assistant", actorId: actor.conversationId ?? actor.credential };
    case "viewer":
      return { actor: "operator", actorId: actor.credential };
    case "host":
      return { actor: "host", actorId: actor.hostId };
    case "link":
    case "system":
      return { actor: actor.type, actorId: null };
  }
}
