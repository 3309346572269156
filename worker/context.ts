import { fillPlaceholders, type SQL } from "drizzle-orm";
import { drizzle, type DrizzleD1Database } from "drizzle-orm/d1";
import { formatId, type Id, type IdKind } from "../protocol/ids.ts";
import type { Answer, Question } from "../protocol/agent/running.ts";
import type { ChatReply, StoredMessage } from "../protocol/api/chat.ts";
import type { Refused, Sent } from "./objects/conversation.ts";
import type { DevicePolled } from "../protocol/api/device.ts";
import type { LogLine } from "../protocol/api/deployments.ts";
import type { AccountPlan, AccountRole } from "../protocol/states.ts";
import { resolveTxt } from "./adapters/dns.ts";
import { paymentsOf } from "./adapters/payments/index.ts";
import type { Payments } from "./adapters/payments/payments.ts";
import { backupStore, type BackupStore } from "./adapters/storage.ts";
import { secretBox, type SecretBox } from "./adapters/secret-box.ts";
import { configOf, type Config, type Env } from "./env.ts";
import { logError } from "./log-error.ts";
import type { Offer } from "./jobs/lease.ts";

/** Who acts. Comes from the credential, never from the input. */
export type Actor =
  | { type: "key"; accountId: Id<"account">; role: AccountRole; plan: AccountPlan; keyId: Id<"key"> }
  | {
      type: "session";
      accountId: Id<"account">;
      role: AccountRole;
      plan: AccountPlan;
      sessionId: Id<"session">;
    }
  /** The model, on behalf of an account: it may do what the account's key may, operators' work excepted. */
  | {
      type: "assistant";
      accountId: Id<"account">;
      role: AccountRole;
      plan: AccountPlan;
      conversationId: Id<"conversation">;
      /** What the person came with. */
      credential: Credential;
    }
  | { type: "host"; hostId: Id<"host"> }
  /** The bearer of a secret address (deploy webhook, invoice page), or nobody in particular. */
  | { type: "link"; address?: string }
  /** Timers and set-up. */
  | { type: "system" };

/** What an account is opened with. */
export type Credential = Id<"key" | "session">;
/** Who follows a log, and what they came with. */
export type Reader = { accountId: Id<"account">; credential: Credential };

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
  /** The TXT records of a name. @throws when no resolver answers */
  resolveTxt(name: string): Promise<string[]>;
  backups: BackupStore;
  hosts: HostHints;
  questions: HostQuestions;
  guards: KeyGuards;
  logs: DeploymentLogs;
  devices: DeviceCodes;
  conversations: Conversations;
  /** Let a promise outlive the answer. */
  defer(work: Promise<unknown>): void;
};

type Preparable = { prepare(): { getQuery(): { sql: string; params: unknown[] } } };
type Prepared = ReturnType<Preparable["prepare"]>;
const preparedOf = new WeakMap<D1Database, WeakMap<object, Prepared>>();

/** What `db.batch` takes: a prepared query whose parameters are filled in. */
function bound(
  client: D1Database,
  db: Db,
  query: ((db: Db) => Preparable) | SQL,
  values: Record<string, unknown>,
) {
  let known = preparedOf.get(client);
  if (!known) preparedOf.set(client, (known = new WeakMap()));
  let prepared = known.get(query);
  if (!prepared)
    known.set(
      query,
      (prepared = typeof query === "function" ? query(db).prepare() : rawStatement(client, db, query)),
    );
  const { sql, params } = prepared.getQuery();
  const filled = { sql, params: fillPlaceholders(params, values) };
  const item = Object.create(prepared, { getQuery: { value: () => filled } }) as object;
  return Object.assign(item, { _prepare: () => item });
}

/** drizzle-orm's own `db.run` binds no parameters in a batch: it looks for them at a statement that it never made. */
function rawStatement(client: D1Database, db: Db, query: SQL) {
  const raw = db.run(query);
  const written = raw.getQuery();
  return Object.assign(raw, { stmt: client.prepare(written.sql), getQuery: () => written });
}

/** Hints to the hosts' links. The jobs table is the truth: a lost hint costs latency, never a job. */
export type HostHints = {
  /** There is work; null: for any host. */
  wake(hostId: Id<"host"> | null): void;
  /** It was leased to this host. */
  deliver(hostId: Id<"host">, offer: Offer): void;
  /** It may have leases that it was never told of. */
  remind(hostId: Id<"host">): void;
  /** Leases of this host were ended or are to be cancelled: tell the agent. */
  revise(hostId: Id<"host">, lease: { jobId: Id<"job">; attempt: number }, verdict: "drop" | "cancel"): void;
  /** The site or database is not there any more: who follows its log there is let go, and may go on where it is. */
  letGo(hostId: Id<"host">, id: Id<"site" | "database">): void;
  /** The host is removed: its agent is told, and not let in again. */
  disconnect(hostId: Id<"host">): void;
};

export type LogQuestion = Extract<Question, { kind: "logs" }>;

/** What a host knows of its running sites; `refused` says why it cannot be asked now. */
export type HostQuestions = {
  ask(hostId: Id<"host">, question: Question): Promise<Answer>;
  /** The log as server-sent events, for as long as the reader's key or session works. */
  follow(
    hostId: Id<"host">,
    question: LogQuestion,
    reader: Reader,
  ): Promise<ReadableStream<Uint8Array> | Extract<Answer, { kind: "refused" }>>;
};

export type KeyGuards = {
  revoke(keyHash: string): Promise<void>;
  /** The key's account has changed. */
  forget(keyHash: string): Promise<void>;
};

/** Of deployments and of commands. */
export type DeploymentLogs = {
  /** Closes the log with a last line; watchers see the end. */
  finish(id: Id<"deployment" | "command">, line: string): void;
  remove(id: Id<"deployment" | "command">): void;
  read(id: Id<"deployment" | "command">, afterSeq: number, limit: number): Promise<LogLine[]>;
  /** As server-sent events; null: too many follow it already. */
  follow(
    id: Id<"deployment" | "command">,
    afterSeq: number,
    reader: Credential,
    isOver: boolean,
  ): Promise<ReadableStream<Uint8Array> | null>;
};

export type { Sent } from "./objects/conversation.ts";
export type Conversations = {
  send(sent: Sent): Promise<{ reply: ChatReply } | Refused>;
  stream(sent: Sent): Promise<{ events: ReadableStream<Uint8Array> } | Refused>;
  resume(
    id: Id<"conversation">,
    accountId: string,
    afterSeq: number,
  ): Promise<{ events: ReadableStream<Uint8Array> } | Refused>;
  history(id: Id<"conversation">, accountId: string): Promise<{ messages: StoredMessage[] } | Refused>;
  remove(id: Id<"conversation">): Promise<void>;
};

export type DeviceCodes = {
  /** false: this user code is in use, take another. */
  start(userCode: string, deviceHash: string, client: { name: string; address: string }): Promise<boolean>;
  /** null: nothing waits here (any more); a number: too many polls, wait so many seconds. */
  poll(userCode: string, deviceHash: string): Promise<DevicePolled | number | null>;
};

const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));

export function contextOf(
  env: Env,
  actor: Actor,
  outlive: (work: Promise<unknown>) => void,
  requestId: string | null = null,
): Ctx {
  const defer = (work: Promise<unknown>) =>
    outlive(work.catch((error: unknown) => logError({ deferred: true }, error)));
  const config = configOf(env);
  const link = (hostId: Id<"host">) => env.HOST_LINK.get(env.HOST_LINK.idFromName(hostId));
  const log = (id: Id<"deployment" | "command">) => env.DEPLOYMENT_LOG.get(env.DEPLOYMENT_LOG.idFromName(id));
  const device = (userCode: string) => env.DEVICE_CODE.get(env.DEVICE_CODE.idFromName(userCode));
  const conversation = (id: Id<"conversation">) => env.CONVERSATION.get(env.CONVERSATION.idFromName(id));
  const guard = (keyHash: string) => env.KEY_GUARD.get(env.KEY_GUARD.idFromName(keyHash));
  const db = drizzle(env.DB);
  let box: SecretBox | undefined;
  return {
    actor,
    requestId,
    db,
    statement: (query) => rawStatement(env.DB, db, query),
    hot: (query: ((db: Db) => Preparable) | SQL, values: Record<string, unknown>) =>
      bound(env.DB, db, query, values) as never,
    config,
    now: () => new Date(),
    random,
    newId: (kind) => formatId(kind, Date.now(), random(10)),
    newMark: () => Buffer.from(random(16)).toString("base64url"),
    get secrets() {
      return (box ??= secretBox([config.SECRET_KEY, ...config.SECRET_KEYS_OLD], random));
    },
    payments: paymentsOf(config, env.DB, () => new Date()),
    resolveTxt: (name) => resolveTxt(config.DNS_ENDPOINTS, name),
    backups: backupStore(env.BACKUPS),
    hosts: {
      wake: (hostId) =>
        defer(
          hostId
            ? link(hostId).wake()
            : env.DB.prepare("SELECT id FROM hosts WHERE status = 'ACTIVE'")
                .all<{ id: Id<"host"> }>()
                .then(({ results }) => Promise.all(results.map(({ id }) => link(id).wake()))),
        ),
      deliver: (hostId, offer) => defer(link(hostId).deliver(offer)),
      remind: (hostId) => defer(link(hostId).remind()),
      revise: (hostId, lease, verdict) => defer(link(hostId).revise(lease, verdict)),
      letGo: (hostId, id) => defer(link(hostId).letGo(id)),
      disconnect: (hostId) => defer(link(hostId).disconnect()),
    },
    questions: {
      ask: (hostId, question) => link(hostId).ask(question),
      follow: (hostId, question, reader) => link(hostId).follow(question, reader),
    },
    guards: { revoke: (keyHash) => guard(keyHash).revoke(), forget: (keyHash) => guard(keyHash).forget() },
    logs: {
      finish: (id, line) => defer(log(id).finish(line)),
      remove: (id) => defer(log(id).remove()),
      read: (id, afterSeq, limit) => log(id).read(afterSeq, limit),
      follow: (id, afterSeq, reader, isOver) => log(id).follow(afterSeq, reader, isOver),
    },
    conversations: {
      send: (sent) => conversation(sent.conversationId).send(sent),
      stream: (sent) => conversation(sent.conversationId).stream(sent),
      resume: (id, accountId, afterSeq) => conversation(id).resume(accountId, afterSeq),
      history: (id, accountId) => conversation(id).history(accountId),
      remove: (id) => conversation(id).remove(),
    },
    devices: {
      start: (userCode, deviceHash, { name, address }) => device(userCode).start(deviceHash, name, address),
      poll: (userCode, deviceHash) => device(userCode).poll(deviceHash),
    },
    defer,
  };
}

/** The account that acts. Links, hosts and timers have none: their verbs never ask. */
export function accountOf(ctx: Ctx): Id<"account"> {
  const { actor } = ctx;
  if (actor.type === "key" || actor.type === "session" || actor.type === "assistant") return actor.accountId;
  throw new Error(`A ${actor.type} has no account`);
}

/** @throws Error for a link, a host or a timer */
export const readerOf = (ctx: Ctx): Reader => ({ accountId: accountOf(ctx), credential: credentialOf(ctx) });

/** The key or the session that acts. */
export function credentialOf({ actor }: Ctx): Credential {
  if (actor.type === "key") return actor.keyId;
  if (actor.type === "session") return actor.sessionId;
  if (actor.type === "assistant") return actor.credential;
  throw new Error(`A ${actor.type} came with no credential`);
}

/** What began a deployment, command or backup that somebody asked for. */
export const triggerOf = ({ actor }: Ctx): "api" | "chat" => (actor.type === "assistant" ? "chat" : "api");
