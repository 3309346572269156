import { afterEach, describe, expect, it, vi } from "vitest";
import type { OwnAccount } from "../../protocol/api/accounts.ts";
import type { EnvHistory } from "../../protocol/api/env-history.ts";
import type { Invoice } from "../../protocol/api/invoices.ts";
import type { EnvChanged } from "../../protocol/api/sites.ts";
import { funded, ownerOf } from "./assistant.ts";
import { account, api, bindings, createSite, pay, site, uniqueName } from "./service.ts";

afterEach(() => vi.restoreAllMocks());

describe("an invoice", () => {
  it("is cancelled by its owner while it is unpaid, and the site that nobody paid goes with it", async () => {
    const [key, other] = [await account(), await account()];
    const { siteId, invoiceId, invoiceToken } = await createSite(key);
    const cancel = (as: string, id = invoiceId) => api<Invoice>(as, "POST", `/invoices/${id}/cancel`);
    expect((await cancel(other)).status).toBe(403);
    expect(await cancel(key)).toMatchObject({ status: 200, body: { status: "void" } });
    expect((await api(key, "GET", `/sites/${siteId}`)).status).toBe(404);
    expect((await pay(invoiceToken)).status).toBe(409);
    expect(await cancel(key)).toMatchObject({ status: 200, body: { status: "void" } });
    const paid = await createSite(key);
    await pay(paid.invoiceToken);
    expect((await cancel(key, paid.invoiceId)).status).toBe(409);
    expect((await api(key, "GET", `/sites/${paid.siteId}`)).status).toBe(200);
  });

  it("whose payment the bank has not confirmed yet is not cancelled, and neither is a renewal", async () => {
    const key = await account();
    const { siteId, invoiceId } = await createSite(key);
    await bindings.DB.prepare(
      `INSERT INTO checkouts (id, invoice_id, number, processor, session_id, status, created_at, expires_at, check_at)
      VALUES (?, ?, 1, 'test', ?, 'processing', 1, 1, 999999999999999)`,
    )
      .bind(`chk_${invoiceId}`, invoiceId, invoiceId)
      .run();
    expect((await api(key, "POST", `/invoices/${invoiceId}/cancel`)).status).toBe(409);
    await bindings.DB.prepare("DELETE FROM checkouts WHERE invoice_id = ?").bind(invoiceId).run();
    await bindings.DB.prepare("UPDATE invoices SET kind = 'renewal' WHERE id = ?").bind(invoiceId).run();
    const { status, body } = await api(key, "POST", `/invoices/${invoiceId}/cancel`);
    expect([status, body["reason"]]).toEqual([409, expect.stringContaining("renewal")]);
    expect((await api(key, "GET", `/sites/${siteId}`)).status).toBe(200);
  });
});

describe("the account", () => {
  it("shows what is paid and owed, the limits in use and the ends of terms", async () => {
    const key = await funded();
    const before = (await api<OwnAccount>(key, "GET", "/account")).body;
    expect(before).toMatchObject({
      id: await ownerOf(key),
      plan: "free",
      payment: { verified: false, lastPaidAt: null, unpaid: [] },
      limits: { apiKeys: { used: 1, limit: 50 }, awaitingPayment: { used: 0 } },
      terms: [],
    });
    const [paid, unpaid] = [await createSite(key, { name: "paid" }), await createSite(key)];
    await pay(paid.invoiceToken);
    await api(key, "POST", "/databases", { name: uniqueName("data"), type: "redis" });
    const after = (await api<OwnAccount>(key, "GET", "/account")).body;
    expect(after.payment).toMatchObject({
      verified: true,
      unpaid: [{ id: unpaid.invoiceId, kind: "site", amountCents: 500 }, { kind: "database" }],
    });
    expect(after.limits.awaitingPayment.used).toBe(2);
    expect(after.terms.map(({ kind, paidUntil }) => [kind, paidUntil !== null])).toEqual([
      ["site", false],
      ["database", false],
      ["site", true],
    ]);
    expect(after.terms.at(-1)).toMatchObject({ id: paid.siteId, name: "paid", status: "DEPLOYING" });
  });
});

describe("the history of an environment", () => {
  const set = (key: string, siteId: string, envVariables: object[]) =>
    api<EnvChanged>(key, "PATCH", `/sites/${siteId}`, { envVariables });
  const history = async (key: string, siteId: string) =>
    (await api<EnvHistory>(key, "GET", `/sites/${siteId}/env`)).body.data;

  it("names who changed which variables when, and no value", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    await set(key, siteId, [
      { key: "A", value: "first-plain" },
      { key: "TOKEN", value: "first-secret", encrypted: true },
    ]);
    await set(key, siteId, [
      { key: "A", value: null },
      { key: "B", value: "" },
      { key: "TOKEN", value: "second-secret" },
    ]);
    const versions = await history(key, siteId);
    expect(versions).toMatchObject([
      {
        version: 2,
        actor: "key",
        actorId: expect.stringMatching(/^key_/) as string,
        restoredFrom: null,
        changes: [
          { key: "TOKEN", change: "changed" },
          { key: "B", change: "added" },
          { key: "A", change: "removed" },
        ],
        variables: 2,
        current: true,
      },
      { version: 1, current: false, variables: 2 },
    ]);
    expect(JSON.stringify(versions)).not.toMatch(/first|second/);
  });

  it("brings a version back as the newest, with its secrets, and keeps the one that it replaces", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    await set(key, siteId, [{ key: "TOKEN", value: "first-secret", encrypted: true }]);
    await set(key, siteId, [
      { key: "TOKEN", value: null },
      { key: "B", value: "2" },
    ]);
    const restore = (version: number, as = key) =>
      api<EnvChanged>(as, "POST", `/sites/${siteId}/env/restore`, { version });
    expect((await restore(1, await account())).status).toBe(403);
    expect((await restore(7)).status).toBe(404);
    expect((await restore(1)).body.envVariables).toMatchObject([{ key: "TOKEN", value: null }]);
    expect((await site(key, siteId)).envVariables).toMatchObject([{ key: "TOKEN", encrypted: true }]);
    expect((await history(key, siteId))[0]).toMatchObject({ version: 3, restoredFrom: 1, current: true });
    // Unchanged, so that a repeated request adds nothing.
    await restore(3);
    expect(await history(key, siteId)).toHaveLength(3);
    const { results } = await bindings.DB.prepare(
      "SELECT version, entries FROM site_env_versions WHERE site_id = ? AND version IN (1, 3)",
    )
      .bind(siteId)
      .all<{ entries: string }>();
    expect(results[0]?.entries).toBe(results[1]?.entries);
  });

  it("does not bring back a variable that a link to a database sets now", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    await set(key, siteId, [{ key: "DATABASE_URL", value: "by hand" }]);
    await set(key, siteId, [{ key: "DATABASE_URL", value: null }]);
    const { body } = await api<{ databaseId: string }>(key, "POST", "/databases", {
      name: uniqueName("data"),
      type: "postgresql",
    });
    const linked = await api(key, "POST", `/databases/${body.databaseId}/links`, { siteId });
    expect(linked.status).toBe(201);
    expect((await api(key, "POST", `/sites/${siteId}/env/restore`, { version: 1 })).status).toBe(409);
    expect(await history(key, siteId)).toHaveLength(2);
  });
});
