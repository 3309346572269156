import { eq } from "drizzle-orm";
import { describe, expect, it, vi } from "vitest";
import { contextOf } from "../../worker/compose.ts";
import * as schema from "../../worker/db/schema.ts";
import type { AppError } from "../../worker/domain/app-error.ts";
import { sha256Hex } from "../../worker/domain/tokens.ts";
import { changeAccount } from "../../worker/services/accounts/change.ts";
import { finishAccountChanges } from "../../worker/services/accounts/tell-guards.ts";
import { createKey } from "../../worker/services/keys/create.ts";
import { deliverDeviceKey } from "../../worker/services/device/deliver.ts";
import { findKeyActor } from "../../worker/services/keys/find.ts";
import { finishRevocations } from "../../worker/services/keys/finish-revocations.ts";
import { requireRoomForKey } from "../../worker/services/keys/insert.ts";
import { revokeKey } from "../../worker/services/keys/revoke.ts";
import { guardIsKilled, guardSleeps, keepTouched, persisted, writesOf } from "./guards.ts";
import {
  account,
  api,
  bindings,
  call,
  createSite,
  operator,
  operatorCookie,
  siteUrl,
  uniqueName,
} from "./service.ts";

async function signedIn() {
  const headers = {
    Cookie: await operatorCookie(),
    Origin: siteUrl,
    "Content-Type": "application/json",
  };
  return async <Body = Record<string, unknown>>(method: string, path: string, body?: unknown) => {
    const answer = await call(`/api/v1${path}`, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as Body };
  };
}

it("a key is a Bearer token with nothing beside it", async () => {
  const key = await account();
  const answers = [`Bearer ${key}`, `bearer ${key}`, key, `Basic ${key}`, "Bearer", `Bearer ${key} more`].map(
    async (authorization) =>
      (await call("/api/v1/sites?limit=1", { headers: { Authorization: authorization } })).status,
  );
  expect(await Promise.all(answers)).toEqual([200, 200, 401, 401, 401, 401]);
});

describe("the limit of a key", () => {
  const ask = async (key: string) => (await api(key, "GET", "/sites?limit=1")).status;
  const askAtOnce = async (key: string, times: number) =>
    (await Promise.all(Array.from({ length: times }, () => ask(key)))).filter((status) => status === 200)
      .length;

  it("is exact for many requests at once, before and after its guard slept", async () => {
    const key = await account();
    expect(await askAtOnce(key, 25)).toBe(25);
    await persisted(key, 25);
    await guardSleeps(key);
    expect(await askAtOnce(key, 100)).toBe(35);
    await persisted(key, 60);
    await guardSleeps(key);
    expect(await askAtOnce(key, 20)).toBe(0);
  });

  it("forgives no more than the last second when its guard is killed", async () => {
    const key = await account();
    expect(await askAtOnce(key, 40)).toBe(40);
    await persisted(key, 40);
    expect(await askAtOnce(key, 10)).toBe(10);
    await guardIsKilled(key);
    const admitted = await askAtOnce(key, 60);
    expect(admitted).toBeGreaterThanOrEqual(10);
    expect(admitted).toBeLessThanOrEqual(20);
  });

  it("costs its guard one write a second at most, and no answer waits for one", async () => {
    const key = await account();
    expect(await ask(key)).toBe(200);
    await persisted(key, 1);
    const begun = Date.now();
    const writes = await writesOf(key);
    for (let times = 0; times < 20; times++) expect(await ask(key)).toBe(200);
    await persisted(key, 21);
    expect(writes()).toBeGreaterThan(0);
    expect(writes()).toBeLessThanOrEqual(1 + Math.ceil((Date.now() - begun) / 1000));
  });
});

describe("an account's role and plan", () => {
  const rolesOf = async (id: string) =>
    bindings.DB.prepare("SELECT role, plan FROM accounts WHERE id = ?").bind(id).first();
  /** An account with a key in use and what an operator makes of it. */
  async function somebody() {
    const [key, operators] = [await account(), await operator()];
    const row = await bindings.DB.prepare("SELECT account_id AS id FROM api_keys WHERE hash = ?")
      .bind(sha256Hex(key))
      .first<{ id: string }>();
    const id = row?.id ?? "";
    expect((await api(key, "GET", "/hosts")).status).toBe(403);
    const change = (patch: object) => api(operators, "PATCH", `/accounts/${id}`, patch);
    return { key, id, change };
  }

  it("changed by an operator hold for the very next request of every key, also of one whose guard sleeps", async () => {
    const { key, id, change } = await somebody();
    expect(await change({ role: "operator" })).toMatchObject({
      status: 200,
      body: { id, role: "operator", plan: "free" },
    });
    expect((await api(key, "GET", "/hosts")).status).toBe(200);
    await guardSleeps(key);
    expect((await change({ role: "user", plan: "pro" })).body).toMatchObject({ role: "user", plan: "pro" });
    expect((await api(key, "GET", "/hosts")).status).toBe(403);
    // The plan's own limit: more than ten messages a minute.
    const said = await Promise.all(
      Array.from({ length: 15 }, () => api(key, "POST", "/chat", { message: "Hello" })),
    );
    expect(said.map(({ status }) => status)).not.toContain(429);
  });

  it("are not put back by a request that read them before the change", async () => {
    const { key, change } = await somebody();
    await change({ role: "operator" });
    const uses = Array.from({ length: 30 }, () => api(key, "GET", "/hosts"));
    await change({ role: "user" });
    await Promise.all(uses);
    expect((await api(key, "GET", "/hosts")).status).toBe(403);
  });

  it("whose change was cut short before the guards heard of it are finished by the timer, once", async () => {
    const { key, id } = await somebody();
    const ctx = contextOf(bindings, { ...(await operatorActor()) }, () => undefined);
    const forget = () => Promise.reject(new Error("overloaded"));
    await expect(
      changeAccount({ ...ctx, guards: { ...ctx.guards, forget } }, { id, role: "operator" }),
    ).rejects.toThrow("overloaded");
    expect(await rolesOf(id)).toMatchObject({ role: "operator" });
    const told: string[] = [];
    const counting = { ...ctx.guards, forget: (hash: string) => (told.push(hash), ctx.guards.forget(hash)) };
    await finishAccountChanges({ ...ctx, guards: counting });
    await finishAccountChanges({ ...ctx, guards: counting });
    expect(told).toEqual([sha256Hex(key)]);
    expect((await api(key, "GET", "/hosts")).status).toBe(200);
    await changeAccount(ctx, { id, role: "user" });
  });

  it("are an operator's to change, found by the address; the last operator stays one", async () => {
    const { key, id } = await somebody();
    expect((await api(key, "GET", "/accounts")).status).toBe(403);
    expect((await api(key, "PATCH", `/accounts/${id}`, { role: "operator" })).status).toBe(403);
    const operators = await operator();
    const found = await api<{ data: { id: string }[] }>(
      operators,
      "GET",
      `/accounts?email=${id}@example.com`,
    );
    expect(found.body.data.map((one) => one.id)).toEqual([id]);
    expect(
      (await api(operators, "PATCH", "/accounts/acc_001m80000000000000000000000", { plan: "pro" })).status,
    ).toBe(404);
    expect((await api(operators, "PATCH", `/accounts/${id}`, {})).status).toBe(400);
    expect((await api(operators, "PATCH", `/accounts/${id}`, { email: "x@example.com" })).status).toBe(400);
    const { accountId } = await operatorActor();
    const last = await api(operators, "PATCH", `/accounts/${accountId}`, { role: "user" });
    expect([last.status, last.body["reason"]]).toEqual([409, expect.stringContaining("only operator")]);
    expect((await api(operators, "GET", "/hosts")).status).toBe(200);
  });
});

async function personWithoutKeys() {
  const ctx = contextOf(bindings, { type: "system" }, () => undefined);
  const [accountId, sessionId, now] = [ctx.newId("account"), ctx.newId("session"), ctx.now()];
  const times = { createdAt: now, updatedAt: now };
  await ctx.db.batch([
    ctx.db
      .insert(schema.accounts)
      .values({ id: accountId, name: "Test", email: `${accountId}@example.com`, ...times }),
    ctx.db.insert(schema.sessions).values({
      id: sessionId,
      token: sessionId,
      accountId,
      ...times,
      expiresAt: new Date(now.getTime() + 60_000),
    }),
  ]);
  return { type: "session", accountId, role: "user", plan: "free", sessionId } as const;
}

async function operatorActor() {
  const ctx = contextOf(bindings, { type: "system" }, () => undefined);
  const actor = await findKeyActor(ctx.db, sha256Hex(await operator()));
  if (!actor) throw new Error("The operator's key is not known");
  return actor;
}

describe("API keys", () => {
  it("are made by a signed-in person, shown once, listed without the key, and refused right after revocation", async () => {
    const person = await signedIn();
    const made = await person<{ id: string; key: string }>("POST", "/keys", { name: "laptop" });
    expect([made.status, made.body]).toEqual([
      201,
      expect.objectContaining({
        name: "laptop",
        origin: "dashboard",
        key: expect.stringMatching(/^sk_/),
        lastUsedAt: null,
      }),
    ]);
    expect((await api(made.body.key, "GET", "/sites")).status).toBe(200);
    const { body: list } = await person<{ data: { id: string }[] }>("GET", "/keys");
    expect(list.data.map(({ id }) => id)).toContain(made.body.id);
    expect(JSON.stringify(list)).not.toContain(made.body.key);
    expect((await person("DELETE", `/keys/${made.body.id}`)).status).toBe(200);
    expect((await api(made.body.key, "GET", "/sites")).status).toBe(401);
    expect((await person("DELETE", `/keys/${made.body.id}`)).status).toBe(404);
  });

  it("are shown once also under an Idempotency-Key, whose replay is the record without the key", async () => {
    const own = await operatorCookie();
    const create = (path: string, name: string) =>
      call(`/api/v1${path}`, {
        method: "POST",
        headers: {
          Cookie: own,
          Origin: siteUrl,
          "Content-Type": "application/json",
          "Idempotency-Key": name,
        },
        body: JSON.stringify({ name }),
      });
    for (const [path, name, secrets] of [
      ["/keys", uniqueName("key"), ["key"]],
      ["/hosts", uniqueName("host"), ["token", "installCommand"]],
    ] as const) {
      const [first, again] = [await create(path, name), await create(path, name)];
      expect([first.status, again.status, again.headers.get("Idempotency-Replayed")]).toEqual([
        201,
        201,
        "true",
      ]);
      const shown = await first.json<Record<string, unknown>>();
      for (const secret of secrets) {
        expect(shown[secret]).toEqual(expect.any(String));
        delete shown[secret];
      }
      expect(await again.json()).toEqual(shown);
    }
  });

  it("are not made for a session that ends while one is asked for, as all do with a new password", async () => {
    const person = await personWithoutKeys();
    const ctx = contextOf(bindings, person, () => undefined);
    // The request was let in before.
    await ctx.db.delete(schema.sessions).where(eq(schema.sessions.id, person.sessionId));
    await expect(createKey(ctx, { name: "late" })).rejects.toMatchObject({ code: "unauthorized" });
    const made = ctx.db.select().from(schema.apiKeys).where(eq(schema.apiKeys.accountId, person.accountId));
    expect(await made).toEqual([]);
  });

  it("are fifty of an account at most, however many are made at once, and one that is revoked makes room", async () => {
    const ctx = contextOf(bindings, { type: "system" }, () => undefined);
    const person = await personWithoutKeys();
    const as = contextOf(bindings, person, () => undefined);
    const made = await Promise.allSettled(
      Array.from({ length: 60 }, (_, at) => createKey(as, { name: `key ${at}` })),
    );
    const keys = made.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    expect(keys).toHaveLength(50);
    const refused = made.find((one) => one.status === "rejected")?.reason as AppError;
    expect([refused.code, refused.extra["reason"]]).toEqual(["conflict", expect.stringContaining("50 keys")]);
    // An approved device is one more.
    const deliver = (keyId = ctx.newId("key")) =>
      deliverDeviceKey(ctx, person, { clientName: "device", origin: "device" }, keyId);
    expect(await deliver()).toBeNull();
    await expect(requireRoomForKey(ctx, person.accountId)).rejects.toThrow("conflict");
    await revokeKey(as, { id: keys[0]?.id ?? "" });
    await requireRoomForKey(ctx, person.accountId);
    const keyId = ctx.newId("key");
    expect(await deliver(keyId)).toMatch(/^sk_/);
    // The one that nobody got is replaced.
    expect(await deliver(keyId)).toMatch(/^sk_/);
    expect(await deliver()).toBeNull();
  });

  it("cannot manage keys", async () => {
    const key = await account();
    expect((await api(key, "GET", "/keys")).status).toBe(403);
    expect((await api(key, "POST", "/keys", { name: "more" })).status).toBe(403);
    expect((await api(key, "DELETE", "/keys/key_1")).status).toBe(403);
  });

  it("can end themselves, and no other key and no session with them", async () => {
    const person = await signedIn();
    const { body: own } = await person<{ id: string; key: string }>("POST", "/keys", { name: "signs out" });
    const { body: other } = await person<{ id: string; key: string }>("POST", "/keys", { name: "stays" });
    expect(await api(own.key, "DELETE", "/keys/current")).toMatchObject({
      status: 200,
      body: { id: own.id, revoked: true },
    });
    expect((await api(own.key, "DELETE", "/keys/current")).status).toBe(401);
    expect((await api(other.key, "GET", "/sites")).status).toBe(200);
    expect(await person("DELETE", "/keys/current")).toMatchObject({
      status: 409,
      body: { reason: expect.stringContaining("without an API key") },
    });
  });

  it("revoked while many requests use them are not brought back by one of them", async () => {
    const person = await signedIn();
    const { body } = await person<{ id: string; key: string }>("POST", "/keys", { name: "raced" });
    const uses = Array.from({ length: 40 }, () =>
      api(body.key, "GET", "/packs").then(() => api(body.key, "GET", "/sites")),
    );
    await person("DELETE", `/keys/${body.id}`);
    await Promise.all(uses);
    expect((await api(body.key, "GET", "/sites")).status).toBe(401);
  });
});

describe("a revocation that was cut short before the key's guard heard of it", () => {
  /** A key in use whose guard could not be reached when it was revoked. */
  async function cutShort() {
    const ctx = contextOf(bindings, await personWithoutKeys(), () => undefined);
    const { id, key } = await createKey(ctx, { name: "used" });
    expect((await api(key, "GET", "/sites")).status).toBe(200);
    const revoke = () => Promise.reject(new Error("overloaded"));
    await expect(revokeKey({ ...ctx, guards: { ...ctx.guards, revoke } }, { id })).rejects.toThrow(
      "overloaded",
    );
    return { ctx, id, key };
  }

  it("is finished by the next DELETE", async () => {
    const { ctx, id, key } = await cutShort();
    await expect(revokeKey(ctx, { id })).rejects.toThrow("Not found");
    expect((await api(key, "GET", "/sites")).status).toBe(401);
  });

  it("is finished by the timer, once", async () => {
    const { ctx, id, key } = await cutShort();
    await finishRevocations(ctx);
    expect((await api(key, "GET", "/sites")).status).toBe(401);
    const told: string[] = [];
    const revoke = (hash: string) => Promise.resolve(void told.push(hash));
    const counting = { ...ctx.guards, revoke };
    await finishRevocations({ ...ctx, guards: counting });
    await expect(revokeKey({ ...ctx, guards: counting }, { id })).rejects.toThrow("Not found");
    expect(told).toEqual([]);
  });
});

describe("a key's last use", () => {
  it("is written once however often its guard sleeps in between, and again five minutes later", async () => {
    const key = await account();
    const hash = sha256Hex(key);
    const lastUsedAt = async () =>
      (
        await bindings.DB.prepare("SELECT last_used_at AS at FROM api_keys WHERE hash = ?")
          .bind(hash)
          .first<{ at: number | null }>()
      )?.at;
    await api(key, "GET", "/sites");
    await vi.waitFor(async () => expect(await lastUsedAt()).toBeGreaterThan(0), 10_000);
    await bindings.DB.prepare("UPDATE api_keys SET last_used_at = 1 WHERE hash = ?").bind(hash).run();
    for (let sleep = 0; sleep < 3; sleep++) {
      await persisted(key, sleep + 1);
      await guardSleeps(key);
      expect((await api(key, "GET", "/sites")).headers.get("RateLimit")).toMatch(`r=${58 - sleep};`);
    }
    await persisted(key, 4);
    await guardSleeps(key);
    expect(await lastUsedAt()).toBe(1);
    await keepTouched(key, Date.now() - 5 * 60_000);
    await api(key, "GET", "/sites");
    await vi.waitFor(async () => expect(await lastUsedAt()).toBeGreaterThan(1), 10_000);
  });
});

describe("invoices", () => {
  it("are listed newest first, page by page, to their account only", async () => {
    const [key, other] = [await account(), await account()];
    const made = [await createSite(key), await createSite(key), await createSite(key)];
    const first = await api<{ data: { id: string }[]; nextCursor: string }>(key, "GET", "/invoices?limit=2");
    const second = await api<{ data: { id: string }[]; nextCursor: null }>(
      key,
      "GET",
      `/invoices?limit=2&cursor=${first.body.nextCursor}`,
    );
    const seen = [...first.body.data, ...second.body.data].map(({ id }) => id);
    expect(new Set(seen)).toEqual(new Set(made.map(({ invoiceId }) => invoiceId)));
    expect(seen).toEqual(seen.toSorted().toReversed());
    expect(second.body.nextCursor).toBeNull();
    expect((await api(key, "GET", `/invoices/${seen[0]}`)).body).toMatchObject({
      status: "unpaid",
      kind: "site",
    });
    expect((await api(other, "GET", `/invoices/${seen[0]}`)).status).toBe(403);
    expect((await api(other, "GET", "/invoices/invoice_none")).status).toBe(404);
    expect((await api(key, "GET", "/invoices?limit=0")).status).toBe(400);
    expect((await api(key, "GET", "/invoices?unknown=1")).status).toBe(400);
  });
});

it("a key that a record does not know any more, which was put back to an earlier moment, ends within minutes of use", async () => {
  const key = await account();
  const list = async () => (await api(key, "GET", "/sites")).status;
  expect(await list()).toBe(200);
  const hash = sha256Hex(key);
  await bindings.DB.prepare("DELETE FROM api_keys WHERE hash = ?").bind(hash).run();
  await guardSleeps(key);
  await keepTouched(key, Date.now() - 5 * 60_000);
  await vi.waitFor(async () => expect(await list()).toBe(401), 10_000);
});
