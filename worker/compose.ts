import { waitUntil } from "cloudflare:workers";
import type { SQL } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { Answer } from "../protocol/agent/running.ts";
import { growingIds, type Id } from "../protocol/ids.ts";
import { createAuth, type Auth } from "./adapters/auth.ts";
import { acmeAuthority } from "./adapters/acme.ts";
import { hostPrograms } from "./adapters/assets.ts";
import { dnsOverHttps } from "./adapters/dns.ts";
import { zoneOf } from "./adapters/dns-zone/index.ts";
import { paymentsOf } from "./adapters/payments/index.ts";
import { backupStore } from "./adapters/storage.ts";
import { fetchOnce, postOnce } from "./adapters/web.ts";
import { secretBox } from "./adapters/secret-box.ts";
import { configOf } from "./config.ts";
import type { Actor, Ctx, Db } from "./ctx.ts";
import { announcing } from "./db/announce.ts";
import { bound, rawStatement, type Preparable } from "./db/prepared.ts";
import { AppError } from "./domain/app-error.ts";
import type { Env } from "./env.ts";
import { logError } from "./log-error.ts";
import { takeFrom } from "./middleware/limit.ts";
import { streamAddress, streamHeader, type Guarding, type StreamOpening } from "./objects/rpc.ts";
import { keepAddressLink } from "./services/accounts/address-links.ts";
import { confirmEmail } from "./services/accounts/confirm-email.ts";
import { endLinks } from "./services/accounts/end-links.ts";
import { finishRevocations } from "./services/keys/finish-revocations.ts";
import { publicSettings, takesSignUps } from "./services/settings/read.ts";

const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));
const newId = growingIds(() => Date.now(), random);

/** The guard of a key: in the memory of the Worker where that has them, an object elsewhere. */
export const guardOf = (env: Env, keyHash: string): Guarding =>
  env.GUARDS ? env.GUARDS(keyHash) : env.KEY_GUARD.get(env.KEY_GUARD.idFromName(keyHash));

/** What is the same for whoever acts. Made once per isolate: these are most of a context, and most requests use few of them. */
function sharedOf(env: Env) {
  const config = configOf(env);
  const link = (hostId: Id<"host">) => env.HOST_LINK.get(env.HOST_LINK.idFromName(hostId));
  const log = (id: Id<"deployment" | "command">) => env.DEPLOYMENT_LOG.get(env.DEPLOYMENT_LOG.idFromName(id));
  const device = (userCode: string) => env.DEVICE_CODE.get(env.DEVICE_CODE.idFromName(userCode));
  const conversation = (id: Id<"conversation">) => env.CONVERSATION.get(env.CONVERSATION.idFromName(id));
  const pendingCall = (id: string) => env.PENDING_CALL.get(env.PENDING_CALL.idFromName(id));
  const eventsOf = (accountId: Id<"account">) =>
    env.ACCOUNT_EVENTS.get(env.ACCOUNT_EVENTS.idFromName(accountId));
  const parts = {
    config,
    now: () => new Date(),
    random,
    newId,
    newMark: () => Buffer.from(random(16)).toString("base64url"),
    secrets: secretBox([config.SECRET_KEY, ...config.SECRET_KEYS_OLD], random),
    zone: zoneOf(config),
    payments: paymentsOf(config, env.DB, () => new Date()),
    dns: dnsOverHttps(config.DNS_ENDPOINTS),
    fetchOnce: (url) => fetchOnce(url, env.INGRESS),
    postOnce,
    backups: backupStore(env.BACKUPS),
    hostPrograms: () => hostPrograms(env.ASSETS).catch(() => null),
    questions: {
      ask: (hostId, question) => link(hostId).ask(question),
      follow: (hostId, question, reader) => link(hostId).follow(question, reader),
      async connect(hostId, target, reader) {
        // A WebSocket crosses to another object in the answer to a request only.
        const opening: StreamOpening = { target, reader };
        const answer = await link(hostId).fetch(
          new Request(streamAddress, {
            headers: { Upgrade: "websocket", [streamHeader]: encodeURIComponent(JSON.stringify(opening)) },
          }),
        );
        return answer.webSocket ?? answer.json<Extract<Answer, { kind: "refused" }>>();
      },
    },
    guards: {
      revoke: (keyHash) => guardOf(env, keyHash).revoke(),
      forget: (keyHash) => guardOf(env, keyHash).forget(),
    },
    conversations: {
      send: (sent) => conversation(sent.conversationId).send(sent),
      stream: (sent) => conversation(sent.conversationId).stream(sent),
      resume: (id, accountId, afterSeq) => conversation(id).resume(accountId, afterSeq),
      history: (id, accountId) => conversation(id).history(accountId),
      remove: (id) => conversation(id).remove(),
    },
    pendingCalls: {
      keep: (id, call) => pendingCall(id).keep(call),
      read: (id, accountId) => pendingCall(id).read(accountId),
      take: (id, accountId, as) => pendingCall(id).take(accountId, as),
      settle: (id, outcome) => pendingCall(id).settle(outcome),
      outcome: (id, accountId) => pendingCall(id).outcome(accountId),
    },
    events: { follow: (accountId, reader, afterSeq) => eventsOf(accountId).follow(afterSeq, reader) },
    takeFrom: (limit, accountId) => takeFrom({ env }, limit, accountId),
    devices: {
      start: (userCode, deviceHash, { name, address, origin }) =>
        device(userCode).start(deviceHash, name, address, origin),
      poll: (userCode, deviceHash) => device(userCode).poll(deviceHash),
    },
  } satisfies Partial<Ctx>;
  return { parts, link, log, eventsOf, drizzle: drizzle(env.DB) };
}
const known = new WeakMap<Env, ReturnType<typeof sharedOf>>();

/**
 * The context of a request, of a timer or of a host's link. None of its literals has a getter: V8 makes a hidden class of each
 * such object, which holds it, and the whole request with it, until the next full garbage collection.
 */
export function contextOf(
  env: Env,
  actor: Actor,
  outlive: (work: Promise<unknown>) => void,
  requestId: string | null = null,
): Ctx {
  let shared = known.get(env);
  if (!shared) known.set(env, (shared = sharedOf(env)));
  const { parts, link, log, eventsOf } = shared;
  const defer = (work: Promise<unknown>) =>
    outlive(work.catch((error: unknown) => logError({ deferred: true }, error)));
  const db = announcing(env.DB, shared.drizzle, (accountId) => defer(eventsOf(accountId).wake()));
  return {
    ...parts,
    actor,
    requestId,
    db,
    statement: (query) => rawStatement(env.DB, db, query),
    hot: (query: ((db: Db) => Preparable) | SQL, values: Record<string, unknown>) =>
      bound(env.DB, db, query, values) as never,
    // It keeps an answer, which only the request that asked for it may await.
    acme: acmeAuthority(parts.config.ACME_DIRECTORY),
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
      certify: (hostId) => link(hostId).certify(),
      tellPeers: (hostId) => defer(link(hostId).tellPeers()),
      disconnect: (hostId) => defer(link(hostId).disconnect()),
    },
    logs: {
      finish: (id, line) => defer(log(id).finish(line)),
      remove: (id) => defer(log(id).remove()),
      read: (id, afterSeq, limit) => log(id).read(afterSeq, limit),
      follow: (id, afterSeq, reader, isOver) => log(id).follow(afterSeq, reader, isOver),
    },
    defer,
  };
}

const auths = new WeakMap<Env, Promise<Auth>>();

/** better-auth, created once per isolate. */
export function authOf(env: Env): Promise<Auth> {
  let auth = auths.get(env);
  if (!auth)
    auths.set(
      env,
      (auth = createAuth(contextOf(env, { type: "system" }, waitUntil), {
        passwordReset,
        mayMail: (to, subject) => mayMail(env, to, subject),
        addressLinkMailed: keepAddressLink,
        addressConfirmed: async (ctx, accountId) => void (await endLinks(ctx, accountId)),
        passwordWritten: endLinks,
        brandName,
        takesSignUps,
      })),
    );
  return auth;
}

/** By subject, so that sign-ups of strangers leave its owner the mails that reset the password. */
async function mayMail(env: Env, to: string, subject: string): Promise<boolean> {
  try {
    await takeFrom({ env }, "mailedTo", `${subject} ${to.toLowerCase()}`);
    return true;
  } catch (error) {
    if (error instanceof AppError) return false;
    throw error;
  }
}

const brandName = async (ctx: Ctx): Promise<string> => (await publicSettings(ctx)).brand.name;

/** A mailed link proves the address. Keys were revoked together with the old password, unless their owner keeps them. */
async function passwordReset(ctx: Ctx, accountId: Id<"account">): Promise<void> {
  await confirmEmail(ctx, accountId);
  await finishRevocations(ctx, accountId);
}
