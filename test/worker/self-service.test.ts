import { afterEach, describe, expect, it, vi } from "vitest";
import type { AccountDeletion, Session } from "../../protocol/api/self-service.ts";
import type { Page } from "../../protocol/api/common.ts";
import { app } from "../../worker/app.ts";
import { account, api, bindings, call, createSite, newSession, operator, run, siteUrl } from "./service.ts";
import { ownerOf } from "./assistant.ts";

afterEach(() => vi.restoreAllMocks());

/** A session of the key's account: its cookie and its id. */
const sessionOf = async (key: string) => newSession(await ownerOf(key));
async function as<Body = Record<string, unknown>>(
  cookie: string,
  method: string,
  path: string,
  body?: object,
) {
  const response = await call(`/api/v1${path}`, {
    method,
    headers: { Cookie: cookie, Origin: siteUrl, ...(body && { "Content-Type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, body: await response.json<Body>() };
}

describe("a signed-in person", () => {
  it("changes the name of the account, and a key does not", async () => {
    const key = await account();
    const { cookie } = await sessionOf(key);
    expect(await as(cookie, "PATCH", "/account", { name: "  Ada  " })).toMatchObject({
      status: 200,
      body: { name: "Ada" },
    });
    expect((await api(key, "GET", "/account")).body["name"]).toBe("Ada");
    expect((await api(key, "PATCH", "/account", { name: "Eve" })).status).toBe(403);
    expect((await as(cookie, "PATCH", "/account", { name: " " })).status).toBe(400);
    expect((await as(cookie, "PATCH", "/account", { name: "A", role: "operator" })).status).toBe(400);
  });

  it("sees where the account is signed in, and signs one or all others out, at once; nobody else's", async () => {
    const key = await account();
    const [mine, second, third] = [await sessionOf(key), await sessionOf(key), await sessionOf(key)];
    const stranger = await sessionOf(await account());
    const { body } = await as<Page<Session>>(mine.cookie, "GET", "/account/sessions");
    expect(body.data).toHaveLength(3);
    expect(body.data.find(({ current }) => current)).toMatchObject({
      id: mine.id,
      ipAddress: "203.0.113.7",
      userAgent: "Firefox",
    });
    expect(JSON.stringify(body)).not.toContain("token");
    expect((await as(stranger.cookie, "DELETE", `/account/sessions/${second.id}`)).status).toBe(403);
    expect((await as(second.cookie, "GET", "/account")).status).toBe(200);
    expect((await as(mine.cookie, "DELETE", `/account/sessions/${second.id}`)).status).toBe(200);
    expect((await as(second.cookie, "GET", "/account")).status).toBe(401);
    expect((await as(mine.cookie, "DELETE", `/account/sessions/${second.id}`)).status).toBe(404);
    expect((await as(mine.cookie, "DELETE", "/account/sessions")).body).toEqual({ revoked: 1 });
    expect((await as(third.cookie, "GET", "/account")).status).toBe(401);
    expect((await as(mine.cookie, "GET", "/account")).status).toBe(200);
    expect((await as(stranger.cookie, "GET", "/account")).status).toBe(200);
  });

  it("exports all data of the account as one file, without secrets and without anybody else's", async () => {
    const [key, other] = [await account(), await account()];
    const { cookie } = await sessionOf(key);
    const { siteId } = await createSite(key, { gitToken: "canary-token" });
    const { siteId: foreign } = await createSite(other);
    await api(key, "PATCH", `/sites/${siteId}`, {
      envVariables: [
        { key: "SECRET", value: "canary-secret", encrypted: true },
        { key: "PLAIN", value: "shown" },
      ],
    });
    await api(await operator(), "POST", "/credits/grants", { accountId: await ownerOf(key), amount: 3 });
    await api(key, "PATCH", "/billing/details", { name: "Ada Ltd" });
    const { status, headers, body } = await as<Record<string, Record<string, unknown>[]>>(
      cookie,
      "GET",
      "/account/export",
    );
    expect([status, headers.get("Content-Disposition")]).toEqual([
      200,
      'attachment; filename="berth-account.json"',
    ]);
    expect(body).toMatchObject({
      account: { id: await ownerOf(key) },
      billingDetails: { name: "Ada Ltd" },
      sites: [{ id: siteId, deployments: [], schedules: [], commands: [] }],
      databases: [],
      invoices: [{ kind: "site", status: "unpaid" }],
      keys: [{ name: "test" }],
      sessions: [{ userAgent: "Firefox" }],
      conversations: [],
      transactions: [{ type: "grant", amount: 3 }],
    });
    expect(body["activity"]?.map(({ operation }) => operation)).toEqual(
      expect.arrayContaining(["createSite", "patchSite"]),
    );
    const text = JSON.stringify(body);
    expect(text).toContain("shown");
    expect(text).not.toMatch(/canary/);
    expect(text).not.toContain(foreign);
    for (let count = 0; count < 4; count++) await as(cookie, "GET", "/account/export");
    expect((await as(cookie, "GET", "/account/export")).status).toBe(429);
  });
});

describe("the deletion of an account", () => {
  it("is refused while sites, databases, invoices or credits stand in the way, which are named", async () => {
    const key = await account();
    const [id, { cookie }] = [await ownerOf(key), await sessionOf(key)];
    const email = `${id}@example.com`;
    const { invoiceId } = await createSite(key);
    const look = () => as<AccountDeletion>(cookie, "GET", "/account/deletion");
    expect((await look()).body.obstacles.map(({ code, count }) => [code, count])).toEqual([
      ["sites", 1],
      ["unpaid_invoices", 1],
    ]);
    const remove = (body: object) => as(cookie, "POST", "/account/delete", body);
    expect(await remove({ email })).toMatchObject({
      status: 409,
      body: { reason: expect.stringMatching(/sites.*invoices/) as string },
    });
    await api(key, "POST", `/invoices/${invoiceId}/cancel`);
    await api(await operator(), "POST", "/credits/grants", { accountId: id, amount: 3 });
    expect((await look()).body).toEqual({ obstacles: [], credits: 3, backups: 0 });
    expect((await remove({ email })).status).toBe(409);
    expect((await remove({ email: "other@example.com", loseCredits: true })).status).toBe(400);
    expect((await api(key, "GET", "/account")).body["email"]).toBe(email);
  });

  it("ends keys, sessions and sign-in at once, forgets name and address, and keeps what money needs", async () => {
    const key = await account();
    const [id, { cookie }, other] = [await ownerOf(key), await sessionOf(key), await sessionOf(key)];
    const { invoiceId } = await createSite(key);
    await api(key, "POST", `/invoices/${invoiceId}/cancel`);
    await api(key, "PATCH", "/billing/details", { name: "Ada Ltd", address: "1 High Street" });
    await run(
      "INSERT INTO identities (id, account_id, provider_id, provider_account_id, created_at, updated_at) VALUES (?, ?, 'github', ?, 1, 1)",
      id,
      id,
      id,
    );
    await run(
      "INSERT INTO mails (id, account_id, subject, text, created_at, try_at) VALUES (?, ?, 's', 't', 1, 1)",
      id,
      id,
    );
    const removed = await as(cookie, "POST", "/account/delete", {
      email: ` ${id.toUpperCase()}@example.com `,
    });
    expect([removed.status, removed.body]).toEqual([200, { id, deleted: true }]);
    expect((await api(key, "GET", "/account")).status).toBe(401);
    for (const one of [cookie, other.cookie]) expect((await as(one, "GET", "/account")).status).toBe(401);
    for (const table of ["sessions", "identities", "mails", "billing_details"])
      expect(
        await bindings.DB.prepare(`SELECT count(*) AS n FROM ${table} WHERE account_id = ?`)
          .bind(id)
          .first("n"),
      ).toBe(0);
    const { results } = await bindings.DB.prepare("SELECT arguments FROM activity WHERE account_id = ?")
      .bind(id)
      .all();
    expect(results).not.toEqual([]);
    expect(JSON.stringify(results)).not.toMatch(/@example\.com/i);
    const { body } = await api<{ name: string; email: string }>(await operator(), "GET", `/accounts/${id}`);
    expect(body).toMatchObject({
      name: "Deleted account",
      email: expect.stringMatching(/\.invalid$/) as string,
    });
    const { body: found } = await api<Page<{ id: string }>>(
      await operator(),
      "GET",
      `/invoices/all?accountId=${id}`,
    );
    expect(found.data).toMatchObject([{ id: invoiceId, status: "void" }]);
  });

  it("is not for operators, and not for keys", async () => {
    const key = await operator();
    const { cookie } = await sessionOf(key);
    const { body } = await as<AccountDeletion>(cookie, "GET", "/account/deletion");
    expect(body.obstacles.map(({ code }) => code)).toContain("operator");
    const remove = await as(cookie, "POST", "/account/delete", {
      email: "operator@example.com",
      loseCredits: true,
    });
    expect(remove.status).toBe(409);
    expect((await api(await account(), "POST", "/account/delete", { email: "x@example.com" })).status).toBe(
      403,
    );
  });
});

describe("a change of address", () => {
  it("is confirmed by the old address, then by the new one, and only then made", async () => {
    const key = await account();
    const id = await ownerOf(key);
    await run("UPDATE accounts SET email_verified = 1 WHERE id = ?", id);
    const { cookie } = await sessionOf(key);
    const mails: { to: string[]; text: string }[] = [];
    vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
      mails.push(await new Request(input, init).json());
      return new Response("{}");
    });
    const auth = (path: string, init: RequestInit) =>
      app.fetch(new Request(siteUrl + path, init), bindings, {
        waitUntil: () => undefined,
        passThroughOnException: () => undefined,
      } as unknown as ExecutionContext);
    const newEmail = `new-${id}@example.com`;
    const asked = await auth("/api/auth/change-email", {
      method: "POST",
      headers: { Cookie: cookie, Origin: siteUrl, "Content-Type": "application/json" },
      body: JSON.stringify({ newEmail }),
    });
    expect(asked.status).toBe(200);
    const emailNow = async () => (await api(key, "GET", "/account")).body["email"];
    const confirm = async (index: number) => {
      await expect.poll(() => mails.length).toBe(index + 1);
      const token = /confirm-address\?token=(\S+)/.exec(mails[index]?.text ?? "")?.[1] ?? "";
      const headers = { Cookie: cookie, Origin: siteUrl };
      return auth("/confirm-address", { method: "POST", headers, body: new URLSearchParams({ token }) });
    };
    expect((await confirm(0)).status).toBe(303);
    expect([mails[0]?.to, await emailNow()]).toEqual([[`${id}@example.com`], `${id}@example.com`]);
    expect((await confirm(1)).status).toBe(303);
    expect([mails[1]?.to, await emailNow()]).toEqual([[newEmail], newEmail]);
  });
});
