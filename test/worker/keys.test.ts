import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import { contextOf } from "../../worker/context.ts";
import * as schema from "../../worker/db/schema.ts";
import { sha256Hex } from "../../worker/domain/tokens.ts";
import { createKey } from "../../worker/services/keys/create.ts";
import { finishRevocations } from "../../worker/services/keys/finish-revocations.ts";
import { revokeKey } from "../../worker/services/keys/revoke.ts";
import { account, api, bindings, call, createSite, operator, siteUrl } from "./service.ts";

async function signedIn() {
  await operator();
  const response = await call("/sign-in", {
    method: "POST",
    redirect: "manual",
    headers: { Origin: siteUrl },
    body: new URLSearchParams({ email: "operator@example.com", password: "correct horse battery" }),
  });
  const headers = {
    Cookie: response.headers.get("Set-Cookie")?.split(";")[0] ?? "",
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

  it("cannot manage keys", async () => {
    const key = await account();
    expect((await api(key, "GET", "/keys")).status).toBe(403);
    expect((await api(key, "POST", "/keys", { name: "more" })).status).toBe(403);
    expect((await api(key, "DELETE", "/keys/key_1")).status).toBe(403);
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
    const system = contextOf(bindings, { type: "system" }, () => undefined);
    const [accountId, now] = [system.newId("account"), system.now()];
    const times = { createdAt: now, updatedAt: now };
    await system.db
      .insert(schema.accounts)
      .values({ id: accountId, name: "Test", email: `${accountId}@example.com`, ...times });
    const sessionId = system.newId("session");
    const actor = { type: "session", accountId, role: "user", plan: "free", sessionId } as const;
    const ctx = contextOf(bindings, actor, () => undefined);
    const { id, key } = await createKey(ctx, { name: "used" });
    expect((await api(key, "GET", "/sites")).status).toBe(200);
    const unreachable = { revoke: () => Promise.reject(new Error("overloaded")) };
    await expect(revokeKey({ ...ctx, guards: unreachable }, id)).rejects.toThrow("overloaded");
    return { ctx, id, key };
  }

  it("is finished by the next DELETE", async () => {
    const { ctx, id, key } = await cutShort();
    await expect(revokeKey(ctx, id)).rejects.toThrow("Not found");
    expect((await api(key, "GET", "/sites")).status).toBe(401);
  });

  it("is finished by the timer, once", async () => {
    const { ctx, id, key } = await cutShort();
    await finishRevocations(ctx);
    expect((await api(key, "GET", "/sites")).status).toBe(401);
    const told: string[] = [];
    const counting = { revoke: (hash: string) => Promise.resolve(void told.push(hash)) };
    await finishRevocations({ ...ctx, guards: counting });
    await expect(revokeKey({ ...ctx, guards: counting }, id)).rejects.toThrow("Not found");
    expect(told).toEqual([]);
  });
});

describe("a key's last use", () => {
  it("is written once however often its guard sleeps in between, and again five minutes later", async () => {
    const key = await account();
    const hash = sha256Hex(key);
    const guard = bindings.KEY_GUARD.get(bindings.KEY_GUARD.idFromName(hash));
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
      await evictDurableObject(guard);
      expect((await api(key, "GET", "/sites")).headers.get("RateLimit")).toMatch(`r=${58 - sleep};`);
    }
    // Eviction waits for what the guard still does.
    await evictDurableObject(guard);
    expect(await lastUsedAt()).toBe(1);
    await runInDurableObject(guard, (_object, state) => {
      const uses = state.storage.kv.get<{ touchedAtMs: number }>("uses");
      state.storage.kv.put("uses", { ...uses, touchedAtMs: Date.now() - 5 * 60_000 });
    });
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
  const guard = bindings.KEY_GUARD.get(bindings.KEY_GUARD.idFromName(hash));
  await evictDurableObject(guard);
  await runInDurableObject(guard, (_object, state) => {
    const uses = state.storage.kv.get<{ touchedAtMs: number }>("uses");
    state.storage.kv.put("uses", { ...uses, touchedAtMs: Date.now() - 5 * 60_000 });
  });
  await vi.waitFor(async () => expect(await list()).toBe(401), 10_000);
});
