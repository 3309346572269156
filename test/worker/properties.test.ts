import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Answer } from "../../protocol/agent/running.ts";
import { operations, type Operation } from "../../protocol/api/operations.ts";
import { contextOf } from "../../worker/context.ts";
import * as schema from "../../worker/db/schema.ts";
import { createHost } from "../../worker/services/hosts/create.ts";
import { newApiKey } from "../../worker/services/keys/create.ts";
import { sha256Hex } from "../../worker/domain/tokens.ts";
import { bindings, call, createSite, readyAgent, runningSite, uniqueName, type Agent } from "./service.ts";

const silent = {
  sizeMb: 0,
  connections: { used: 0, max: 0 },
  cacheHitRatio: null,
  uptimeSeconds: 0,
  activeQueries: [],
  slowQueries: [],
};

/** A host that knows nothing of its sites, and says so. */
async function answerAll(host: Agent): Promise<never> {
  for (;;) {
    const { requestId, question } = await host.next("ask");
    const answers = {
      logs: { lines: [] },
      metrics: { samples: [] },
      events: { events: [] },
      volumes: { volumes: [] },
      removeVolume: {},
      insight: { insight: silent },
      schema: { schema: { tables: [], keyspaces: [], truncated: false } },
      query: { result: { columns: [], rows: [], truncated: false, affectedRows: null, durationMs: 0 } },
    };
    const answer = { kind: question.kind, ...answers[question.kind] } as Answer;
    host.send({ type: "answer", requestId, answer, last: true });
  }
}

/** Not by the operator's key, which may make sixty requests a minute. */
function newHost() {
  const operator = { type: "session", accountId: "acc_operator", role: "operator", plan: "pro" } as const;
  const ctx = contextOf(bindings, operator, () => undefined);
  return createHost(ctx, { name: uniqueName("host") });
}

/** One account with a running site, and a session of it: sessions may make 600 requests a minute. */
async function owner() {
  const ctx = contextOf(bindings, { type: "system" }, () => undefined);
  const [accountId, now, token] = [ctx.newId("account"), ctx.now(), ctx.newMark()];
  const { key, row } = await newApiKey(ctx, accountId, "test", "setup");
  await ctx.db.batch([
    ctx.db.insert(schema.accounts).values({
      id: accountId,
      name: "Test",
      email: `${accountId}@example.com`,
      createdAt: now,
      updatedAt: now,
    }),
    ctx.db.insert(schema.apiKeys).values(row),
    ctx.db.insert(schema.sessions).values({
      id: ctx.newId("session"),
      token: sha256Hex(token),
      accountId,
      createdAt: now,
      updatedAt: now,
      expiresAt: new Date(now.getTime() + 86_400_000 * 30),
    }),
  ]);
  // A host with room for the first job only: what is asked for later waits, and the record stands still.
  const host = await readyAgent(1, await newHost());
  const { siteId, invoiceId } = await runningSite(key, host);
  void answerAll(host);
  const unpaid = await createSite(key);
  return {
    accountId,
    cookie: `berth_session=${token}.`,
    ids: { siteId, invoiceId, keyId: row.id, unpaid: unpaid.siteId },
  };
}
type Owner = Awaited<ReturnType<typeof owner>>;

const tables = [
  "sites",
  "site_env_versions",
  "deployments",
  "jobs",
  "invoices",
  "payments",
  "api_keys",
  "domains",
  "hosts",
  "accounts",
];

/** All that is recorded, but when a key was last used. */
async function record(): Promise<string> {
  const rows = await bindings.DB.batch(
    tables.map((table) => bindings.DB.prepare(`SELECT * FROM ${table} ORDER BY rowid`)),
  );
  return JSON.stringify(
    rows.map(({ results }) => results.map((row) => ({ ...(row as object), last_used_at: null }))),
  );
}

/** Near misses of a valid body: one member changed, lost or added; and any JSON at all. */
const nearMiss = (example: object) =>
  fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc
      .tuple(
        fc.constantFrom(...Object.keys(example), "settings", "domain", "envVariables", "action", "__proto__"),
        fc.jsonValue({ maxDepth: 3 }),
      )
      // Defined, not assigned: a member called __proto__ is sent as such.
      .map(([name, value]) => Object.defineProperty({ ...example }, name, { value, enumerable: true })),
    fc
      .constantFrom(...Object.keys(example), "nothing")
      .map((name) => Object.fromEntries(Object.entries(example).filter(([key]) => key !== name))),
    fc.string({ unit: "binary" }).map((text) => ({ ...example, name: text })),
  );

const anyQuery = fc.dictionary(
  fc.constantFrom("limit", "cursor", "follow", "tail", "since", "code", "other"),
  fc.oneof(fc.string(), fc.constantFrom("1", "0", "-1", "1e9", "NaN", "100", "", "site_0", "\0")),
  { maxKeys: 3 },
);

const anyId = (own: Owner) =>
  fc.oneof(
    fc.constantFrom(...Object.values(own.ids)),
    fc.string({ minLength: 1 }),
    fc.constantFrom("..", "%2e%2e", "'", "a/b"),
  );

// The assistant has limits of its own, lower than what is sent here.
const all = Object.entries<Operation>(operations).filter(
  ([, { path, access }]) => path !== "/openapi.json" && !path.startsWith("/chat") && access !== "none",
);

describe("whatever is sent", () => {
  it.each(all)("%s never answers 500, and changes nothing when it refuses", async (_, operation) => {
    const own = await owner();
    let before = await record();
    await fc.assert(
      fc.asyncProperty(
        nearMiss((operation.examples?.body as object | undefined) ?? {}),
        anyQuery,
        anyId(own),
        async (body, query, id) => {
          const search = new URLSearchParams(query).toString();
          const path = operation.path.replace("{id}", encodeURIComponent(id).replaceAll(".", "%2e"));
          const hasBody = operation.method !== "get" && operation.method !== "delete";
          const response = await call(`/api/v1${path}?${search}`, {
            method: operation.method.toUpperCase(),
            headers: {
              Cookie: own.cookie,
              Origin: "http://127.0.0.1:8787",
              "Content-Type": "application/json",
            },
            ...(hasBody && { body: JSON.stringify(body) }),
          });
          const text = search.includes("follow=1") && response.ok ? "{}" : await response.text();
          await response.body?.cancel().catch(() => undefined);
          expect(response.status).not.toBe(500);
          if (response.status < 400) {
            before = await record();
            return;
          }
          expect(JSON.parse(text)).toMatchObject({ error: expect.any(String) });
          if (operation.method !== "get") expect(await record()).toBe(before);
        },
      ),
      { numRuns: operation.method === "get" ? 15 : 40 },
    );
  });
});
