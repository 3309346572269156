import { env, exports } from "cloudflare:workers";
import { createHmac, randomBytes } from "node:crypto";
import { expect } from "vitest";
import { instanceHeader, ToAgent, type FromAgent } from "../../protocol/agent/messages.ts";
import type { DatabaseSpec, Job, JobKind } from "../../protocol/agent/jobs.ts";
import type { DatabaseCreated } from "../../protocol/api/databases.ts";
import type { Site } from "../../protocol/api/sites.ts";
import { formatId, type Id } from "../../protocol/ids.ts";
import { sha256Hex } from "../../worker/domain/tokens.ts";
import { embeddedD1 } from "../../worker/embedded/database.ts";
import { embeddedGuards } from "../../worker/embedded/guards.ts";
import type { Env } from "../../worker/env.ts";

export const bindings = env as unknown as Env;

/** Runs one statement in the service's database. */
export const run = (statement: string, ...values: unknown[]) =>
  bindings.DB.prepare(statement)
    .bind(...values)
    .run();
// `npm start` runs on it: `BERTH_DATABASE=embedded vitest run --project worker`.
if ("EMBEDDED_DATABASE" in env) {
  bindings.DB = embeddedD1(() => env.EMBEDDED_DATABASE);
  bindings.GUARDS = embeddedGuards(bindings, () => env.KEY_USES);
}
export const siteUrl = "http://127.0.0.1:8787";
export const setupToken = "test-setup-token-test-setup-token";

let strangers = 0;

/** One request to the Worker, as it arrives from outside; with a password, from an address of its own unless it names one. */
export const call = (path: string, init?: RequestInit): Promise<Response> => {
  const request = new Request(siteUrl + path, init);
  if (
    /sign-in|sign-up|password/.test(path) &&
    init?.method === "POST" &&
    !request.headers.has("CF-Connecting-IP")
  )
    request.headers.set("CF-Connecting-IP", `198.19.${++strangers >> 8}.${strangers & 255}`);
  return (exports as unknown as { default: Fetcher }).default.fetch(request);
};

/** A request to the API with a key; answers status, headers and the JSON body. */
export async function api<Body = Record<string, unknown>>(
  key: string | null,
  method: string,
  path: string,
  body?: unknown,
) {
  const response = await call(`/api/v1${path}`, {
    method,
    headers: {
      ...(key && { Authorization: `Bearer ${key}` }),
      ...(body !== undefined && { "Content-Type": "application/json" }),
    },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Body };
}

let operatorId: Promise<Id<"account">> | undefined;

/** The next test file has an installation that is not set up. */
export const forgetOperator = (): void => {
  operatorId = undefined;
};

/** A key of the operator account, each time another, so that no test meets its limit; the installation is set up on first use. */
export async function operator(): Promise<string> {
  const { ctx, key, row, schema } = await newKey(await (operatorId ??= setUp()));
  await ctx.db.insert(schema.apiKeys).values(row);
  return key;
}

export const operatorLogin = { email: "operator@example.com", password: "correct horse battery" };

/** A new session of this account, and its cookie. @param more columns of its row */
export async function newSession(accountId: string, more: Record<string, string | number> = {}) {
  const now = Date.now();
  const [id, token] = [formatId("session", now, randomBytes(10)), uniqueName("token")];
  const row = {
    id,
    token_hash: sha256Hex(token),
    account_id: accountId,
    ip_address: "203.0.113.7",
    user_agent: "Firefox",
    created_at: 1,
    updated_at: 1,
    // Not extended by its first use.
    expires_at: now + 29.5 * 86_400_000,
    ...more,
  };
  const columns = Object.keys(row);
  await bindings.DB.prepare(
    `INSERT INTO sessions (${columns.join()}) VALUES (${columns.map(() => "?").join()})`,
  )
    .bind(...Object.values(row))
    .run();
  return { id, token, cookie: await signedCookie(token) };
}

/** The cookie of a new session of the operator's. */
export async function operatorCookie(): Promise<string> {
  const now = Date.now();
  const id = await (operatorId ??= setUp());
  return (await newSession(id, { created_at: now, updated_at: now })).cookie;
}

/** A session's cookie as better-auth signs it. */
export async function signedCookie(token: string): Promise<string> {
  const { configOf, tokenKeys } = await import("../../worker/config.ts");
  const secret = Buffer.from(tokenKeys(configOf(bindings), "sessions")[0]).toString("base64url");
  const signature = createHmac("sha256", secret).update(token).digest("base64");
  return `berth_session=${encodeURIComponent(`${token}.${signature}`)}`;
}

async function setUp(): Promise<Id<"account">> {
  const response = await call("/setup", {
    method: "POST",
    headers: { Authorization: `Bearer ${setupToken}`, "Content-Type": "application/json" },
    body: JSON.stringify({ ...operatorLogin, name: "Operator" }),
  });
  if (response.status !== 201)
    throw new Error(`set-up answered ${response.status}: ${await response.text()}`);
  return (await response.json<{ accountId: Id<"account"> }>()).accountId;
}

let made = 0;
export const uniqueName = (prefix: string): string => `${prefix}-${++made}`;

/** A key of this account, or of a new one, and the row that is still to be written. */
async function newKey(accountId?: Id<"account">) {
  const { contextOf } = await import("../../worker/compose.ts");
  const { newApiKey } = await import("../../worker/services/keys/create.ts");
  const schema = await import("../../worker/db/schema.ts");
  const ctx = contextOf(bindings, { type: "system" }, () => undefined);
  const id = accountId ?? ctx.newId("account");
  return { ctx, id, schema, ...(await newApiKey(ctx, id, "test", "setup")) };
}

/** A fresh account with a key of its own, so that limits and ownership of tests do not mix. */
export async function account(): Promise<string> {
  const { ctx, id, key, row, schema } = await newKey();
  const now = ctx.now();
  await ctx.db.batch([
    ctx.db
      .insert(schema.accounts)
      .values({ id, name: "Test", email: `${id}@example.com`, createdAt: now, updatedAt: now }),
    ctx.db.insert(schema.apiKeys).values(row),
  ]);
  return key;
}

/** A host that has never been heard, so that what is to run in its region waits. */
export const hostIn = async (region: string) =>
  (
    await api<{ id: string; token: string }>(await operator(), "POST", "/hosts", {
      name: uniqueName("host"),
      region,
    })
  ).body;

export type Agent = {
  hostId: string;
  send(message: FromAgent | Record<string, unknown>): void;
  /** The next frame of this type; other frames are kept. */
  next<T extends ToAgent["type"]>(type: T): Promise<Extract<ToAgent, { type: T }>>;
  /** The next binary frame, or one to send. */
  nextBytes(): Promise<Uint8Array>;
  sendBytes(frame: Uint8Array): void;
  /** Frames that have come and were not asked for yet. */
  waiting(): ToAgent[];
  closed: Promise<{ code: number }>;
  close(): void;
};

/** Asks for an agent's connection. @param instance names its process */
export const connect = (token: string, instance?: string): Promise<Response> =>
  call("/agent/connect", {
    headers: {
      Upgrade: "websocket",
      Authorization: `Bearer ${token}`,
      ...(instance !== undefined && { [instanceHeader]: instance }),
    },
  });

/** An agent of a new host (or of `token`'s host), played by the test over the real link. */
export async function agent(
  token?: { id: string; token: string },
  instance?: string,
): Promise<Agent & { token: { id: string; token: string } }> {
  const host =
    token ??
    (
      await api<{ id: string; token: string }>(await operator(), "POST", "/hosts", {
        name: uniqueName("host"),
      })
    ).body;
  const response = await connect(host.token, instance);
  const socket = response.webSocket;
  if (!socket) throw new Error(`connect answered ${response.status}`);
  const frames: ToAgent[] = [];
  const binary: Uint8Array[] = [];
  const waiters: (() => void)[] = [];
  socket.binaryType = "arraybuffer";
  socket.addEventListener("message", ({ data }) => {
    if (typeof data === "string") frames.push(ToAgent.parse(JSON.parse(data)));
    else binary.push(new Uint8Array(data as ArrayBuffer));
    for (const wake of waiters.splice(0)) wake();
  });
  const closed = new Promise<{ code: number }>((resolve) =>
    socket.addEventListener("close", ({ code }) => resolve({ code })),
  );
  socket.accept();
  return {
    hostId: host.id,
    token: host,
    send: (message) => socket.send(JSON.stringify(message)),
    async next(type) {
      for (;;) {
        const index = frames.findIndex((frame) => frame.type === type);
        const [frame] = index < 0 ? [] : frames.splice(index, 1);
        if (frame) return frame as never;
        await new Promise<void>((resolve) => waiters.push(resolve));
      }
    },
    async nextBytes() {
      for (;;) {
        const frame = binary.shift();
        if (frame) return frame;
        await new Promise<void>((resolve) => waiters.push(resolve));
      }
    },
    sendBytes: (frame) => socket.send(frame),
    waiting: () => [...frames],
    closed,
    close: () => socket.close(1000),
  };
}

type Hello = {
  running?: object[];
  finished?: object[];
  slots?: number;
  facts?: object;
  lostSites?: string[];
  peer?: object;
};

export const hello = (lists: Hello = {}): Record<string, unknown> => ({
  type: "hello",
  protocol: 1,
  agentVersion: "test",
  // Each newer host has more room, so that placement takes the test's own.
  facts: { cpuCount: 2, memoryMb: 100_000 + ++made * 10_000 },
  running: [],
  finished: [],
  // Nothing is leased in the batch that queues it.
  slots: 0,
  lostSites: [],
  ...lists,
});

/** Room for `free` jobs of each kind but commands. */
export const ready = (free: number, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  type: "ready",
  free,
  freeCommands: 0,
  freeShort: free,
  ...more,
});

/** An agent that has said hello. */
export async function greetedAgent(lists?: Hello, token?: { id: string; token: string }) {
  const connected = await agent(token);
  connected.send(hello(lists));
  await connected.next("welcome");
  return connected;
}

/** An agent that has said hello and has room. */
export async function readyAgent(free = 10, token?: { id: string; token: string }, facts?: object) {
  const connected = await greetedAgent(facts && { facts }, token);
  connected.send(ready(free));
  return connected;
}

export const siteInput = (overrides: Record<string, unknown> = {}) => ({
  name: uniqueName("site"),
  deployType: "github",
  githubUrl: "git.example/owner/repo",
  port: 3000,
  billingTerm: 1,
  ...overrides,
});

export async function createSite(key: string, overrides: Record<string, unknown> = {}) {
  const { status, body } = await api<{ siteId: string; invoiceId: string; invoiceToken: string }>(
    key,
    "POST",
    "/sites",
    siteInput(overrides),
  );
  if (status !== 201) throw new Error(`create answered ${status}: ${JSON.stringify(body)}`);
  return body;
}

export const pay = (token: string): Promise<Response> =>
  call(`/invoice/${token}/pay`, { method: "POST", headers: { Accept: "application/json" } });

export const site = async (key: string, id: string): Promise<Site> =>
  (await api<Site>(key, "GET", `/sites/${id}`)).body;

export const deployResult = {
  commit: "a".repeat(40),
  commitMessage: "First",
  imageDigest: `sha256:${"b".repeat(64)}`,
  imageId: `sha256:${"b".repeat(64)}`,
  buildKey: "key-of-the-first",
  durations: { clone: 1, build: 2, start: 3, swap: 4 },
};

/** A site that is created, paid, and deployed by this agent, which has the job. */
export async function deployingSite(key: string, on: Agent, overrides: Record<string, unknown> = {}) {
  const created = await createSite(key, overrides);
  await pay(created.invoiceToken);
  const { job, attempt } = await on.next("job");
  return { ...created, job, attempt };
}

/** A site that runs. */
export async function runningSite(key: string, on: Agent, overrides: Record<string, unknown> = {}) {
  const { job, attempt, ...created } = await deployingSite(key, on, overrides);
  await finish(on, job, attempt, deployResult);
  return created;
}

/** The next job of the host, which must be of this kind. */
export async function jobOf<Kind extends JobKind>(host: Agent, kind: Kind) {
  const { job, attempt } = await host.next("job");
  expect(job.kind).toBe(kind);
  return { job: job as Job<Kind>, attempt };
}

/** A database that runs on this host. */
export async function runningDatabase(key: string, host: Agent, overrides: object = {}) {
  const input = { name: uniqueName("data"), type: "postgresql", ...overrides };
  const { body } = await api<DatabaseCreated>(key, "POST", "/databases", input);
  await pay(body.invoiceToken);
  const { job, attempt } = await jobOf(host, "database.provision");
  await finish(host, job, attempt, { version: "17.2" });
  const spec: DatabaseSpec = job.args.database;
  return { ...body, name: input.name, spec };
}

export async function finish(on: Agent, job: Job, attempt: number, result: unknown = {}): Promise<void> {
  on.send({ type: "done", jobId: job.id, attempt, result });
  await on.next("ack");
}

/** The host's next job, which succeeds with this result. */
export async function finishNext(on: Agent, result: unknown = {}): Promise<Job> {
  const { job, attempt } = await on.next("job");
  await finish(on, job, attempt, result);
  return job;
}

export async function fail(
  on: Agent,
  job: Job,
  attempt: number,
  error = "It broke: mend it.",
  cancelled = false,
): Promise<void> {
  on.send({ type: "failed", jobId: job.id, attempt, error, cancelled, durations: null });
  await on.next("ack");
}
