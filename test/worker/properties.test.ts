import { getTableColumns, getTableName, is } from "drizzle-orm";
import { SQLiteTable } from "drizzle-orm/sqlite-core";
import type { AccountRole } from "../../protocol/states.ts";
import type { Answer } from "../../protocol/agent/running.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { operations, type Operation } from "../../protocol/api/operations.ts";
import { contextOf } from "../../worker/compose.ts";
import * as schema from "../../worker/db/schema.ts";
import { newApiKey } from "../../worker/services/keys/create.ts";
import { mintToken, sha256Hex } from "../../worker/domain/tokens.ts";
import { emptyAnswers } from "./empty-answers.ts";
import { api, bindings, call, createSite, readyAgent, runningSite, siteUrl, type Agent } from "./service.ts";

/** A host that knows nothing of its sites, and says so. */
async function answerAll(host: Agent): Promise<never> {
  for (;;) {
    const { requestId, question } = await host.next("ask");
    const answer = { kind: question.kind, ...emptyAnswers[question.kind] } as Answer;
    host.send({ type: "answer", requestId, answer, last: true });
  }
}

let addresses = 0;

/** One account with a running site, and a session of it: sessions may make 600 requests a minute. */
async function owner(role: AccountRole) {
  const ctx = contextOf(bindings, { type: "system" }, () => undefined);
  const [accountId, now, token] = [ctx.newId("account"), ctx.now(), ctx.newMark()];
  const { key, row } = await newApiKey(ctx, accountId, "test", "setup");
  await ctx.db.batch([
    ctx.db.insert(schema.accounts).values({
      id: accountId,
      name: "Test",
      email: `${accountId}@example.com`,
      role,
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
  // Not by the API: there are more operations than requests that the operator's key has a minute.
  const [hostId, hostToken] = [ctx.newId("host"), mintToken("hst", ctx.random(32))];
  await ctx.db
    .insert(schema.hosts)
    .values({ id: hostId, name: hostId, tokenHash: sha256Hex(hostToken), createdAt: now });
  const host = await readyAgent(1, { id: hostId, token: hostToken });
  const { siteId, invoiceId } = await runningSite(key, host);
  void answerAll(host);
  const unpaid = await createSite(key);
  const { body: webhook } = await api<{ url: string }>(key, "GET", `/sites/${siteId}/webhook`);
  return {
    accountId,
    headers: {
      Cookie: `berth_session=${token}.`,
      Origin: siteUrl,
      "CF-Connecting-IP": `203.0.113.${++addresses}`,
    },
    ids: {
      siteId,
      invoiceId,
      keyId: row.id,
      unpaid: unpaid.siteId,
      unpaidInvoiceId: unpaid.invoiceId,
      webhook: webhook.url.split("/").at(-1) ?? "",
    },
  };
}
type Owner = Awaited<ReturnType<typeof owner>>;

/**
 * All that is recorded, but when a key was last used and what a refused request may leave: its first answer, and a session
 * that lives on. SQLite writes it as one text, as D1 converts results and rows one by one.
 */
const tables = Object.values(schema)
  .filter((table) => is(table, SQLiteTable))
  .filter((table) => table !== schema.idempotentRequests && table !== schema.sessions)
  .map((table) => {
    const columns = Object.values(getTableColumns(table))
      .map(({ name }) => name)
      .filter((name) => name !== "last_used_at");
    return `(SELECT json_group_array(json_array(${columns.join(", ")}) ORDER BY rowid) FROM ${getTableName(table)})`;
  });
const record = (): Promise<string | null> =>
  bindings.DB.prepare(`SELECT ${tables.join(" || ")} AS text`).first<string>("text");

/** Accounts that nothing has changed yet, and how often they were asked: a session may make 600 requests a minute. */
const owners = new Map<AccountRole, { own: Owner; asked: number }>();
const mostAsked = 500;

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
  ([, { path }]) => path !== "/openapi.json" && !path.startsWith("/chat"),
);

describe("whatever is sent", () => {
  it.each(all)("%s never answers 500, and changes nothing when it refuses", async (_, operation) => {
    const role = operation.access === "operator" ? "operator" : "user";
    const runs = operation.method === "get" ? 12 : 32;
    const unchanged = owners.get(role);
    const { own, asked } =
      unchanged && unchanged.asked + runs <= mostAsked ? unchanged : { own: await owner(role), asked: 0 };
    owners.delete(role);
    let before = await record();
    let isChanged = false;
    await fc.assert(
      fc.asyncProperty(
        nearMiss((operation.examples?.body as object | undefined) ?? {}),
        anyQuery,
        anyId(own),
        async (body, query, id) => {
          const search = new URLSearchParams(query).toString();
          const path = operation.path.replace("{id}", encodeURIComponent(id).replaceAll(".", "%2e"));
          const hasBody = operation.method !== "get" && operation.method !== "delete";
          const response = await call(`${operation.at ? "" : "/api/v1"}${path}?${search}`, {
            method: operation.method.toUpperCase(),
            headers: { ...own.headers, "Content-Type": "application/json" },
            ...(hasBody && { body: JSON.stringify(body) }),
          });
          if (operation.access === "operator") expect(response.status).not.toBe(403);
          const text = search.includes("follow=1") && response.ok ? "{}" : await response.text();
          await response.body?.cancel().catch(() => undefined);
          expect(response.status).not.toBe(500);
          if (response.status < 400) {
            isChanged ||= operation.method !== "get";
            before = await record();
            return;
          }
          expect(JSON.parse(text)).toMatchObject({ error: expect.any(String) });
          if (operation.method !== "get") expect(await record()).toBe(before);
        },
      ),
      { numRuns: runs },
    );
    if (!isChanged) owners.set(role, { own, asked: asked + runs });
  });
});
