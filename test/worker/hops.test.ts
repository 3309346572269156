import { assistantActor, ownerOf } from "./assistant.ts";
import { beforeAll, describe, expect, it } from "vitest";
import type { Question } from "../../protocol/agent/running.ts";
import { operations, type Operation } from "../../protocol/api/operations.ts";
import { app } from "../../worker/app.ts";
import type { Env } from "../../worker/env.ts";
import { emptyAnswers } from "./empty-answers.ts";
import {
  account,
  api,
  bindings,
  createSite,
  finishNext,
  operator,
  pay,
  readyAgent,
  run,
  runningSite,
  siteInput,
  siteUrl,
  uniqueName,
} from "./service.ts";

type Counts = { guard: number; d1: number };

/** The bindings, counting round trips; a hint to a host never ends, as it must hold up nothing. */
function countedEnv(counts: Counts): Env {
  const targets = new WeakMap<object, D1PreparedStatement>();
  const statement = (target: D1PreparedStatement): D1PreparedStatement => {
    const counted = {
      bind: (...values: unknown[]) => statement(target.bind(...values)),
      ...Object.fromEntries(
        (["all", "run", "first", "raw"] as const).map((name) => [
          name,
          (...args: never[]) => {
            counts.d1++;
            return (target[name] as (...args: never[]) => unknown)(...args);
          },
        ]),
      ),
    } as unknown as D1PreparedStatement;
    targets.set(counted, target);
    return counted;
  };
  const { DB, KEY_GUARD, HOST_LINK } = bindings;
  const answered = ({ kind }: Question) => Promise.resolve({ kind, ...emptyAnswers[kind] });
  const never = () => new Promise<never>(() => undefined);
  return {
    ...bindings,
    DB: {
      prepare: (sql: string) => statement(DB.prepare(sql)),
      batch: (list: D1PreparedStatement[]) => {
        counts.d1++;
        return DB.batch(list.map((one) => targets.get(one) ?? one));
      },
    } as D1Database,
    // A call to the guard counts, also where `npm start` makes none.
    GUARDS: undefined,
    KEY_GUARD: {
      idFromName: (name: string) => KEY_GUARD.idFromName(name),
      get: (id: DurableObjectId) => ({
        check: (hash: string) => {
          counts.guard++;
          return KEY_GUARD.get(id).check(hash);
        },
      }),
    } as unknown as Env["KEY_GUARD"],
    HOST_LINK: {
      idFromName: (name: string) => HOST_LINK.idFromName(name),
      get: () => ({
        wake: never,
        revise: never,
        letGo: never,
        tellPeers: never,
        disconnect: never,
        ask: answered,
      }),
    } as unknown as Env["HOST_LINK"],
  };
}

let key: string;
let siteId: string;
let invoiceId: string;
let deploymentId: string;
let databaseId: string;
let backupId: string;

/** Another key of the same account: each has a limit of its own. */
async function keyBeside(other: string): Promise<string> {
  const { contextOf } = await import("../../worker/compose.ts");
  const { newApiKey } = await import("../../worker/services/keys/create.ts");
  const { sha256Hex } = await import("../../worker/domain/tokens.ts");
  const schema = await import("../../worker/db/schema.ts");
  const ctx = contextOf(bindings, { type: "system" }, () => undefined);
  const owner = await bindings.DB.prepare("SELECT account_id AS id FROM api_keys WHERE hash = ?")
    .bind(sha256Hex(other))
    .first<{ id: `acc_${string}` }>();
  const made = await newApiKey(ctx, owner?.id ?? "acc_none", "test", "setup");
  await ctx.db.insert(schema.apiKeys).values(made.row);
  return made.key;
}

async function hops(method: string, path: string, body?: unknown): Promise<[status: number, Counts]> {
  const counts: Counts = { guard: 0, d1: 0 };
  const response = await app.fetch(
    new Request(`${siteUrl}/api/v1${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${key}`,
        ...(body !== undefined && { "Content-Type": "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }),
    countedEnv(counts),
    { waitUntil: () => undefined, passThroughOnException: () => undefined } as unknown as ExecutionContext,
  );
  await response.body?.cancel();
  return [response.status, counts];
}

const one = async <Row>(sql: string, ...values: unknown[]): Promise<Row> => {
  const row = await bindings.DB.prepare(sql)
    .bind(...values)
    .first<Row>();
  if (!row) throw new Error(`nothing found: ${sql}`);
  return row;
};

beforeAll(async () => {
  key = await account();
  const on = await readyAgent();
  ({ siteId, invoiceId } = await runningSite(key, on));
  const { body } = await api<{ data: { id: string }[] }>(key, "GET", `/sites/${siteId}/deployments`);
  deploymentId = body.data[0]?.id ?? "";
  ({ databaseId } = await makeDatabase());
  await finishNext(on, { version: "17.2" });
  backupId = (await api<{ id: string }>(key, "POST", `/databases/${databaseId}/backups`)).body.id;
  await on.next("job");
  await run("UPDATE jobs SET status = 'DONE' WHERE lane = ?", databaseId);
  await run("UPDATE backups SET status = 'STORED' WHERE id = ?", backupId);
});

async function makeDatabase(isPaid = true) {
  const input = { name: uniqueName("data"), type: "postgresql" };
  const { body } = await api<{ databaseId: string; invoiceToken: string }>(key, "POST", "/databases", input);
  if (isPaid) await pay(body.invoiceToken);
  return body;
}

/** Work of this site or database is not waited for. */
const idle = async (lane: string) => {
  await run(
    "UPDATE deployments SET status = 'FAILED' WHERE site_id = ? AND status IN ('QUEUED', 'BUILDING')",
    lane,
  );
  await run("UPDATE jobs SET status = 'DONE' WHERE lane = ?", lane);
};
const settled = async (lane: string) => {
  await idle(lane);
  await run(
    "UPDATE sites SET status = 'RUNNING', wanted = 'RUNNING', current_deployment_id = ? WHERE id = ?",
    deploymentId,
    lane,
  );
  await run(
    "UPDATE databases SET status = 'RUNNING', wanted = 'RUNNING', next_password_sealed = NULL WHERE id = ?",
    lane,
  );
};

type Sent = { path?: Record<string, string>; query?: string; body?: unknown };
type Case = () => Sent | Promise<Sent>;
const plain: Case = () => ({});
const ofSite =
  (body?: unknown, name?: string): Case =>
  async () => {
    await settled(siteId);
    return { path: { id: siteId, ...(name !== undefined && { name }) }, body };
  };
const aVolume =
  (body?: unknown): Case =>
  async () => {
    await run("INSERT OR IGNORE INTO site_volumes (site_id, name, created_at) VALUES (?, 'kept', 0)", siteId);
    await run("UPDATE backups SET status = 'FAILED' WHERE status = 'RUNNING'");
    return ofSite(body, "kept")();
  };
const ofDatabase =
  (body?: unknown): Case =>
  async () => {
    await settled(databaseId);
    return { path: { id: databaseId }, body };
  };
const ofBackup: Case = () => ({ path: { id: backupId } });
const ofDeployment: Case = () => ({ path: { id: deploymentId } });
const made = async (path: string, body: unknown, as = key): Promise<string> => {
  const answer = await api<{ id: string }>(as, "POST", path, body);
  if (answer.status > 299)
    throw new Error(`${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
  return answer.body.id;
};
const aCommand: Case = async () => {
  await settled(siteId);
  return { path: { id: await made(`/sites/${siteId}/commands`, { command: "true" }) } };
};
const aSchedule =
  (body?: unknown): Case =>
  async () => {
    const schedule = { name: uniqueName("nightly"), cron: "@daily", command: "true" };
    return { path: { id: await made(`/sites/${siteId}/schedules`, schedule) }, body };
  };
const aChannel =
  (body?: unknown): Case =>
  async () => ({
    path: { id: await made("/notifications/channels", { type: "mail", kinds: ["unhealthy"] }) },
    body,
  });
const aDomain: Case = async () => {
  const name = `${uniqueName("hops")}.example.com`;
  await made(`/sites/${siteId}/domains`, { domain: name });
  return { path: { id: siteId, name } };
};
const pack = {
  kind: "site",
  name: "Hops",
  memoryMb: 256,
  cpuMilli: 250,
  diskGb: 1,
  pids: 64,
  amountCents: 100,
};
const creditPackage = () => ({ name: uniqueName("Some"), credits: 10, amountCents: 100 });

type KeyOperation = {
  [Name in keyof typeof operations]: (typeof operations)[Name]["access"] extends "key" | "operator"
    ? Name
    : never;
}[keyof typeof operations];

const domain = `${uniqueName("hops")}.example.com`;
/** What each operation is asked here; one without a row does not compile. A text says why it is not counted. */
const cases: Record<KeyOperation, Case | Case[] | string> = {
  listSites: plain,
  listAllSites: plain,
  inspectSource: () => ({ body: { githubUrl: "github.com/owner/repository" } }),
  createSite: () => ({ body: siteInput() }),
  getSite: ofSite(),
  patchSite: [
    ofSite({ packId: "pack_001k0000000000000000000002" }),
    ofSite({ envVariables: [{ key: "A", value: "1" }] }),
    ofSite({ settings: { port: 4000 } }),
    ofSite({ domain }),
    ofSite({ domain: { remove: domain } }),
    ofSite({ action: "restart" }),
    ofSite({ action: "deploy" }),
    ofSite({ action: "stop" }),
    async () => {
      const sent = await ofSite({ action: "start" })();
      await run("UPDATE sites SET status = 'STOPPED' WHERE id = ?", siteId);
      return sent;
    },
  ],
  cloneSite: "creates a site as POST /sites does, after reading the one that it copies",
  diagnoseSite: "requests the site from outside",
  probeSite: "requests the site from outside",
  generateSecret: ofSite({ key: "GENERATED" }),
  listEnvVersions: ofSite(),
  restoreEnvVersion: async () => {
    await api(key, "PATCH", `/sites/${siteId}`, { envVariables: [{ key: "RESTORED", value: "1" }] });
    const { version } = await one<{ version: number }>(
      "SELECT min(version) AS version FROM site_env_versions WHERE site_id = ?",
      siteId,
    );
    return ofSite({ version })();
  },
  deleteSite: async () => ({ path: { id: (await createSite(key)).siteId } }),
  listDeployments: ofSite(),
  rollbackSite: async () => {
    await run("UPDATE deployments SET status = 'LIVE' WHERE id = ?", deploymentId);
    return ofSite({ deploymentId })();
  },
  getDeployment: ofDeployment,
  explainDeployment: ofDeployment,
  compareDeployments: async () => {
    const earlier = `${deploymentId.slice(0, -1)}${deploymentId.endsWith("0") ? "1" : "0"}`;
    await run(
      `INSERT INTO deployments (id, site_id, account_id, number, status, trigger, created_at)
        SELECT ?, site_id, account_id, 0, 'CANCELLED', 'api', 0 FROM deployments WHERE id = ?`,
      earlier,
      deploymentId,
    );
    return { path: { id: deploymentId }, query: `?deploymentId=${earlier}` };
  },
  cancelDeployment: async () => {
    await settled(siteId);
    const answer = await api<{ deploymentId: string }>(key, "PATCH", `/sites/${siteId}`, {
      action: "deploy",
    });
    return { path: { id: answer.body.deploymentId } };
  },
  getDeploymentLogs: ofDeployment,
  getSiteLogs: ofSite(),
  searchSiteLogs: async () => ({ ...(await ofSite()()), query: "?text=error" }),
  browseFiles: ofSite(),
  getSiteDisk: ofSite(),
  getSiteMetrics: ofSite(),
  getSiteEvents: ofSite(),
  getSiteRequests: ofSite(),
  getSiteRequestStats: ofSite(),
  getSiteHealth: ofSite(),
  listVolumes: ofSite(),
  changeVolume: aVolume({ backups: { schedule: "daily" } }),
  listVolumeBackups: aVolume(),
  createVolumeBackup: aVolume({}),
  restoreVolume: async () => {
    const { contextOf } = await import("../../worker/compose.ts");
    const id = contextOf(bindings, { type: "system" }, () => undefined).newId("backup");
    await run(
      `INSERT INTO backups (id, database_id, account_id, status, "trigger", name, database_name, type, image, pack_id, created_at)
        SELECT ?, ? || '/gone', account_id, 'VERIFIED', 'api', name, '', 'volume', '', pack_id, 0 FROM sites WHERE id = ?`,
      id,
      siteId,
      siteId,
    );
    return ofSite({ backupId: id }, "beside")();
  },
  removeVolume: async () => {
    await run("UPDATE jobs SET status = 'DONE' WHERE site_id = ?", siteId);
    await run("INSERT INTO site_volumes (site_id, name, created_at) VALUES (?, 'old', 0)", siteId);
    return ofSite(undefined, "old")();
  },
  listDomains: ofSite(),
  createDomain: () => ofSite({ domain: `${uniqueName("hops")}.example.com` })(),
  getDomain: aDomain,
  deleteDomain: aDomain,
  verifyDomain: "asks resolvers and the site's host, and records what they say",
  renewDomain: "asks resolvers and the site's host, and records what they say",
  listCommands: ofSite(),
  runCommand: ofSite({ command: "true" }),
  getCommand: aCommand,
  cancelCommand: aCommand,
  getCommandLogs: aCommand,
  listSchedules: ofSite(),
  createSchedule: ofSite({ name: "hourly", cron: "@hourly", command: "true" }),
  patchSchedule: aSchedule({ enabled: false }),
  deleteSchedule: aSchedule(),
  getWebhook: ofSite(),
  rotateWebhook: ofSite(),
  listDatabases: plain,
  listAllDatabases: plain,
  createDatabase: () => ({ body: { name: uniqueName("data"), type: "redis" } }),
  getDatabase: ofDatabase(),
  patchDatabase: [
    ofDatabase({ action: "restart" }),
    ofDatabase({ action: "stop" }),
    ofDatabase({ backups: { keep: 3 } }),
    ofDatabase({ publicAccess: { enabled: true, allow: ["203.0.113.0/24"] } }),
    async () => {
      const { id } = await one<{ id: string }>(
        "SELECT id FROM packs WHERE kind = 'database' AND active ORDER BY price_cents DESC LIMIT 1",
      );
      return ofDatabase({ packId: id })();
    },
  ],
  deleteDatabase: async () => ({ path: { id: (await makeDatabase(false)).databaseId } }),
  getDatabaseCredentials: ofDatabase(),
  linkDatabase: async () => ofDatabase({ siteId })(),
  unlinkDatabase: ofDatabase(),
  rotateDatabase: ofDatabase(),
  getDatabaseInsight: ofDatabase(),
  getDatabaseSchema: ofDatabase(),
  queryDatabase: ofDatabase({ statement: "SELECT 1" }),
  endDatabaseSession: async () => {
    await settled(databaseId);
    return { path: { id: databaseId, sessionId: "7" } };
  },
  getDatabaseLogs: ofDatabase(),
  getDatabaseDisk: ofDatabase(),
  getDatabaseMetrics: ofDatabase(),
  getDatabaseEvents: ofDatabase(),
  listBackups: ofDatabase(),
  createBackup: async () => {
    await run("UPDATE backups SET status = 'FAILED' WHERE status = 'RUNNING'");
    return ofDatabase()();
  },
  restoreDatabase: async () => ofDatabase({ backupId })(),
  listAllBackups: plain,
  getBackup: ofBackup,
  linkBackup: ofBackup,
  verifyBackup: async () => {
    await run("UPDATE backups SET sha256 = 'a' WHERE id = ?", backupId);
    return { path: { id: backupId } };
  },
  listFailingBackups: plain,
  deleteBackup: async () => {
    await run("UPDATE backups SET status = 'FAILED' WHERE status = 'RUNNING'");
    return { path: { id: await made(`/databases/${databaseId}/backups`, {}, key) } };
  },
  getCredits: plain,
  purchaseCredits: () => ({ body: { packageId: "cpk_001k0000000000000000000001" } }),
  grantCredits: () => ({ body: { email: "operator@example.com", amount: 1 } }),
  listAllCreditPackages: plain,
  createCreditPackage: () => ({ body: creditPackage() }),
  patchCreditPackage: async () => ({
    path: { id: await made("/credits/packages", creditPackage(), await operator()) },
    body: { credits: 11 },
  }),
  chat: "waits for a model",
  chatStream: "waits for a model",
  getChatPrice: plain,
  listConversations: plain,
  getConversation: "asks the object that has its messages",
  followConversation: "asks the object that has its messages",
  patchConversation: "of a conversation, which only a model begins",
  deleteConversation: "of a conversation, which only a model begins",
  listActivity: plain,
  listAllActivity: plain,
  listInvoices: plain,
  listAllInvoices: plain,
  previewRefund: () => ({ path: { id: invoiceId } }),
  getInvoice: () => ({ path: { id: invoiceId } }),
  cancelInvoice: async () => ({ path: { id: (await createSite(key)).invoiceId } }),
  revokeOwnKey: "ends the key that the other cases ask with",
  getAccount: plain,
  followEvents: "asks the object that has the readers",
  getBillingDetails: plain,
  patchBillingDetails: () => ({ body: { name: "Acme GmbH" } }),
  getSettings: plain,
  patchSettings: () => ({ body: { seller: { note: "Thank you." } } }),
  listNotificationChannels: plain,
  createNotificationChannel: () => ({ body: { type: "mail", kinds: ["deploy_failed"] } }),
  patchNotificationChannel: aChannel({ enabled: false }),
  deleteNotificationChannel: aChannel(),
  testNotificationChannel: "asks the receiver, and records what it says",
  listNotificationDeliveries: plain,
  search: () => ({ query: "?q=my-app%20%237" }),
  listUnhealthy: plain,
  getAccountDisk: plain,
  listAccounts: plain,
  getAccountForOperator: async () => ({
    path: { id: (await one<{ id: string }>("SELECT account_id AS id FROM sites LIMIT 1")).id },
  }),
  getOverview: plain,
  getSystem: "asks each part of the installation",
  checkPayments: "asks the payment processor",
  testMail: "waits for the mail service",
  listJobs: plain,
  cancelJob: async () => {
    await settled(siteId);
    await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    return {
      path: {
        id: (await one<{ id: string }>("SELECT id FROM jobs WHERE status = 'QUEUED' AND lane = ?", siteId))
          .id,
      },
    };
  },
  retryJob: "asks as the owner's own operation does, which is measured there",
  patchAccount: "tells the guard of each of the account's keys, and writes each one down",
  patchTerm: async () => {
    await settled(siteId);
    return { path: { id: siteId }, body: { packId: "pack_001k0000000000000000000002" } };
  },
  suspendAccount: "tells the guard of each of the account's keys, and stops each site and database",
  releaseAccount: "tells the guard of each of the account's keys, and starts each site and database",
  disableTwoFactor: async () => ({ path: { id: await ownerOf(await account()) } }),
  listAllPacks: plain,
  createPack: () => ({ body: pack }),
  patchPack: async () => ({
    path: { id: await made("/packs", pack, await operator()) },
    body: { amountCents: 200 },
  }),
  voidInvoice: async () => ({ path: { id: (await createSite(key)).invoiceId } }),
  refundInvoice: "asks the payment processor, between steps that are each written down",
  listPaymentFlags: plain,
  resolvePaymentFlag: async () => {
    const { contextOf } = await import("../../worker/compose.ts");
    const id = contextOf(bindings, { type: "system" }, () => undefined).newId("flag");
    await run(
      "INSERT INTO payment_flags (id, reason, reference, created_at) VALUES (?, 'disputed', 'hops', 0)",
      id,
    );
    return { path: { id }, body: { resolution: "Done." } };
  },
  verifyLedger: "folds the whole ledger, page by page",
  getDns: plain,
  listHosts: plain,
  createHost: () => ({ body: { name: uniqueName("host") } }),
  // What drains moves its sites at once, one by one.
  patchHost: async () => ({
    path: { id: await made("/hosts", { name: uniqueName("host") }, await operator()) },
    body: { action: "activate" },
  }),
  getHostUsage: async () => {
    const { id } = await one<{ id: string }>("SELECT id FROM hosts WHERE status <> 'REMOVED' LIMIT 1");
    return { path: { id } };
  },
  listSetAside: "What the host says it has is looked for in the record.",
  removeSetAside: "What the host says it has is looked for in the record.",
  deleteHost: async () => {
    const id = await made("/hosts", { name: uniqueName("host") }, await operator());
    await run("UPDATE hosts SET status = 'DRAINING' WHERE id = ?", id);
    return { path: { id } };
  },
  rotateSecrets: "reads and seals a page of rows, each guarded by what it was: as many round trips as places",
};

describe("a request with a key", () => {
  const all = Object.entries(operations as Record<string, Operation>).filter(
    ([, { access }]) => access === "key" || access === "operator",
  );
  it.each(all.filter(([name]) => typeof cases[name as KeyOperation] !== "string"))(
    "%s costs one call of its guard, at most one round trip to D1 when it reads, two when it writes, and waits for no host",
    async (name, { method, path, access }) => {
      const asked = cases[name as KeyOperation];
      for (const ask of Array.isArray(asked) ? asked : [asked]) {
        if (typeof ask === "string") continue;
        const sent = await ask();
        const owner = key;
        key = await keyBeside(access === "operator" ? await operator() : owner);
        const filled = path.replaceAll(/\{(\w+)\}/g, (_, parameter: string) => sent.path?.[parameter] ?? "");
        const [status, { guard, d1 }] = await hops(
          method.toUpperCase(),
          filled + (sent.query ?? ""),
          sent.body,
        );
        key = owner;
        const most = method === "get" ? 1 : 2;
        expect([sent.body, status < 300, guard, d1 <= most ? "few" : d1]).toEqual([
          sent.body,
          true,
          1,
          "few",
        ]);
      }
    },
  );

  it("costs five round trips to D1 for what a person is told before a site is deleted, with its databases and backups", async () => {
    const name = uniqueName("reach");
    const on = await readyAgent();
    const volumes = [{ name: "data", mountPath: "/data" }];
    const made = await runningSite(key, on, { name, volumes });
    await run(
      "INSERT INTO database_links (database_id, site_id, variable, created_at) VALUES (?, ?, 'DATABASE_URL', 0)",
      databaseId,
      made.siteId,
    );
    const { name: database } = (await api<{ name: string }>(key, "GET", `/databases/${databaseId}`)).body;
    await run(
      `INSERT INTO backups (id, database_id, account_id, status, "trigger", name, database_name, type, image, pack_id, created_at)
        SELECT 'bak_reach', id || '/data', account_id, 'VERIFIED', 'api', name, '', 'volume', '', pack_id, ? FROM sites WHERE id = ?`,
      Date.now() - 5 * 3_600_000,
      made.siteId,
    );
    const { contextOf } = await import("../../worker/compose.ts");
    const { catalogue } = await import("../../worker/assistant/catalogue.ts");
    const counts: Counts = { guard: 0, d1: 0 };
    const ctx = contextOf(countedEnv(counts), assistantActor(await ownerOf(key)), () => undefined);
    const asked = await catalogue.delete_site.consequence?.(ctx, { site: name, deleteVolumes: true });
    expect(asked?.summary).toContain(
      `linked databases: ${database}; volumes: data (last backup: 5 h old); variables: 0.`,
    );
    expect(counts).toEqual({ guard: 0, d1: 5 });
  });

  it("that is refused for its key or its limit costs no round trip to D1 at all", async () => {
    const owner = key;
    // Whoever else asks with the owner's key is not to meet its limit.
    const limited = await keyBeside(owner);
    key = `${limited.slice(0, -1)}${limited.endsWith("A") ? "B" : "A"}`;
    expect(await hops("GET", "/sites")).toEqual([401, { guard: 0, d1: 0 }]);
    key = limited;
    for (;;) {
      const [status, counts] = await hops("GET", "/sites?limit=1");
      if (status === 200) continue;
      expect([status, counts]).toEqual([429, { guard: 1, d1: 0 }]);
      break;
    }
    key = owner;
  });
});
