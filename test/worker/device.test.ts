import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import type { Id } from "../../protocol/ids.ts";
import { contextOf } from "../../worker/compose.ts";
import * as schema from "../../worker/db/schema.ts";
import { newApiKey } from "../../worker/services/keys/create.ts";
import { sha256Hex } from "../../worker/domain/tokens.ts";
import { api, bindings, call, operator, signedCookie, siteUrl } from "./service.ts";

type Started = {
  device_code: string;
  user_code: string;
  verification_url: string;
  expires_in: number;
  interval: number;
};

let addresses = 0;
const fromNewAddress = () => ({ "CF-Connecting-IP": `198.51.100.${++addresses}` });

async function start(body?: object): Promise<Started> {
  const response = await call("/api/v1/auth/device", {
    method: "POST",
    headers: { ...fromNewAddress(), ...(body && { "Content-Type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  expect(response.status).toBe(200);
  return response.json();
}

async function poll(deviceCode: string) {
  const response = await call(`/api/v1/auth/device-poll?code=${deviceCode}`, { headers: fromNewAddress() });
  return { status: response.status, body: await response.json<Record<string, string>>() };
}

async function cookie(): Promise<string> {
  await operator();
  const response = await call("/sign-in", {
    method: "POST",
    redirect: "manual",
    headers: { Origin: siteUrl, ...fromNewAddress() },
    body: new URLSearchParams({ email: "operator@example.com", password: "correct horse battery" }),
  });
  return response.headers.get("Set-Cookie")?.split(";")[0] ?? "";
}

/** A session's cookie of a new account. */
async function sessionOf(accountId: Id<"account">, token: string): Promise<string> {
  const ctx = contextOf(bindings, { type: "system" }, () => undefined);
  const now = ctx.now();
  const times = { createdAt: now, updatedAt: now };
  await ctx.db.batch([
    ctx.db
      .insert(schema.accounts)
      .values({ id: accountId, name: "Somebody", email: `${accountId}@example.com`, ...times }),
    ctx.db.insert(schema.sessions).values({
      id: ctx.newId("session"),
      token: sha256Hex(token),
      accountId,
      ...times,
      expiresAt: new Date(now.getTime() + 86_400_000 * 30),
    }),
  ]);
  return signedCookie(token);
}

const decide = (own: string, code: string, decision: string, origin = siteUrl) =>
  call("/device", {
    method: "POST",
    headers: { Cookie: own, Origin: origin, ...fromNewAddress() },
    body: new URLSearchParams({ code, decision }),
  });

/** Ten minutes pass for this code. */
const age = (userCode: string, byMs: number) =>
  runInDurableObject(
    bindings.DEVICE_CODE.get(bindings.DEVICE_CODE.idFromName(userCode)),
    (_object, state) => {
      const code = state.storage.kv.get<{ startedAtMs: number }>("code");
      if (code) state.storage.kv.put("code", { ...code, startedAtMs: code.startedAtMs - byMs });
    },
  );

describe("the device flow", () => {
  it("gives a key to the device after a signed-in person approved the code they saw", async () => {
    const started = await start({ clientName: "berth on my-laptop" });
    expect(started).toMatchObject({
      expires_in: 600,
      interval: 2,
      user_code: expect.stringMatching(/^[B-DF-HJ-NP-TV-XZ479]{4}-[B-DF-HJ-NP-TV-XZ479]{4}$/),
    });
    expect(started.verification_url).toBe(`${siteUrl}/device?code=${started.user_code}`);
    expect(await poll(started.device_code)).toEqual({ status: 200, body: { status: "pending" } });
    const own = await cookie();
    const page = await (
      await call(`/device?code=${started.user_code.toLowerCase()}`, { headers: { Cookie: own } })
    ).text();
    expect(page).toContain(started.user_code);
    expect(page).toContain("berth on my-laptop");
    expect((await decide(own, started.user_code, "approve")).status).toBe(200);
    const { status, body } = await poll(started.device_code);
    expect([status, body["status"], body["token"]]).toEqual([200, "approved", expect.stringMatching(/^sk_/)]);
    expect((await api(body["token"] ?? "", "GET", "/sites")).status).toBe(200);
    expect(await poll(started.device_code)).toEqual({ status: 404, body: { error: "Not found" } });
  });

  it("gives no key to a HEAD, which would show it to nobody", async () => {
    const started = await start();
    expect((await decide(await cookie(), started.user_code, "approve")).status).toBe(200);
    const path = `/api/v1/auth/device-poll?code=${started.device_code}`;
    expect((await call(path, { method: "HEAD", headers: fromNewAddress() })).status).toBe(404);
    expect((await poll(started.device_code)).body["status"]).toBe("approved");
  });

  it("delivers one token to fifty polls that race the approval", async () => {
    const started = await start();
    const own = await cookie();
    const polls = Array.from({ length: 50 }, () => poll(started.device_code));
    await decide(own, started.user_code, "approve");
    const answers = [...(await Promise.all(polls)), await poll(started.device_code)];
    expect(answers.filter(({ body }) => body["token"] !== undefined)).toHaveLength(1);
  });

  it("grants nothing when denied, expired, unknown or asked for with another secret", async () => {
    const own = await cookie();
    const denied = await start();
    await decide(own, denied.user_code, "deny");
    const expired = await start();
    await age(expired.user_code, 600_000);
    const approvedTooLate = await start();
    await decide(own, approvedTooLate.user_code, "approve");
    await age(approvedTooLate.user_code, 600_000);
    const guessed = await start();
    for (const code of [
      denied.device_code,
      expired.device_code,
      approvedTooLate.device_code,
      guessed.device_code.slice(0, -1) + (guessed.device_code.endsWith("x") ? "y" : "x"),
      "dev_nonsense",
    ])
      expect(await poll(code)).toEqual({ status: 404, body: { error: "Not found" } });
    expect((await decide(own, expired.user_code, "approve")).status).toBe(404);
    expect((await call("/api/v1/auth/device-poll")).status).toBe(400);
  });

  it("grants nothing once the session that approved it has ended, as all do with a new password", async () => {
    const [own, started] = [await cookie(), await start()];
    await decide(own, started.user_code, "approve");
    await call("/sign-out", {
      method: "POST",
      redirect: "manual",
      headers: { Cookie: own, Origin: siteUrl, ...fromNewAddress() },
    });
    expect(await poll(started.device_code)).toEqual({ status: 404, body: { error: "Not found" } });
  });

  it("is still pending a moment before ten minutes are over", async () => {
    const started = await start();
    await age(started.user_code, 595_000);
    expect((await poll(started.device_code)).body).toEqual({ status: "pending" });
  });

  it("is not approved for an account with as many keys as it may have, and waits until one is revoked", async () => {
    const started = await start();
    const ctx = contextOf(bindings, { type: "system" }, () => undefined);
    const [accountId, token] = [ctx.newId("account"), ctx.newMark()];
    const own = await sessionOf(accountId, token);
    for (let page = 0; page < 5; page++)
      await ctx.db
        .insert(schema.apiKeys)
        .values(
          await Promise.all(
            Array.from(
              { length: 10 },
              async () => (await newApiKey(ctx, accountId, "full", "dashboard")).row,
            ),
          ),
        );
    expect((await decide(own, started.user_code, "approve")).status).toBe(409);
    expect((await poll(started.device_code)).body).toEqual({ status: "pending" });
    await bindings.DB.prepare(
      "DELETE FROM api_keys WHERE id = (SELECT id FROM api_keys WHERE account_id = ? LIMIT 1)",
    )
      .bind(accountId)
      .run();
    expect((await decide(own, started.user_code, "approve")).status).toBe(200);
    expect((await poll(started.device_code)).body["status"]).toBe("approved");
  });

  it("is not approved for a suspended account, which is told why, and waits until it is released", async () => {
    const started = await start();
    const ctx = contextOf(bindings, { type: "system" }, () => undefined);
    const [accountId, token] = [ctx.newId("account"), ctx.newMark()];
    const own = await sessionOf(accountId, token);
    const suspended = (at: number | null) =>
      bindings.DB.prepare("UPDATE accounts SET suspended_at = ?, suspended_for = ? WHERE id = ?")
        .bind(at, at && "It sends spam.", accountId)
        .run();
    await suspended(1);
    const refused = await decide(own, started.user_code, "approve");
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining("It sends spam.")]);
    expect((await poll(started.device_code)).body).toEqual({ status: "pending" });
    await suspended(null);
    expect((await decide(own, started.user_code, "approve")).status).toBe(200);
    expect((await poll(started.device_code)).body["status"]).toBe("approved");
  });

  it("is approved by nobody who is not signed in, nor by another site's page", async () => {
    const started = await start();
    const anonymous = await call(`/device?code=${started.user_code}`, { redirect: "manual" });
    expect([anonymous.status, anonymous.headers.get("Location")]).toEqual([
      303,
      `/sign-in?next=${encodeURIComponent(`/device?code=${started.user_code}`)}`,
    ]);
    await decide("berth_session=nonsense", started.user_code, "approve");
    expect((await decide(await cookie(), started.user_code, "approve", "https://evil.example")).status).toBe(
      403,
    );
    expect((await poll(started.device_code)).body).toEqual({ status: "pending" });
  });

  it("limits the polls of one code", async () => {
    const started = await start();
    const polls = await Promise.all(Array.from({ length: 70 }, () => poll(started.device_code)));
    expect(polls.filter(({ status }) => status === 200)).toHaveLength(60);
    expect(polls.find(({ status }) => status === 429)?.body).toEqual({ error: "rate_limited" });
  });
});

describe("a delivery that ends half-way", () => {
  const objectOf = ({ user_code: code }: Started) =>
    bindings.DEVICE_CODE.get(bindings.DEVICE_CODE.idFromName(code));
  const keysNamed = async (name: string) =>
    (await bindings.DB.prepare("SELECT hash FROM api_keys WHERE name = ?").bind(name).all<{ hash: string }>())
      .results;

  /** An approved code whose object ends, as workerd killed would, when the key is recorded and before anybody has it. */
  async function endedHalfWay(clientName: string): Promise<Started> {
    const started = await start({ clientName });
    await decide(await cookie(), started.user_code, "approve");
    const never = new Promise<never>(() => undefined);
    const stuck = (statement: D1PreparedStatement): D1PreparedStatement =>
      ({
        bind: (...values: unknown[]) => stuck(statement.bind(...values)),
        run: () => statement.run().then(() => never),
      }) as unknown as D1PreparedStatement;
    const DB = { prepare: (query: string) => stuck(bindings.DB.prepare(query)) };
    await runInDurableObject(
      objectOf(started),
      (object) => void Object.assign(object, { env: { ...bindings, DB } }),
    );
    const polled = poll(started.device_code);
    await vi.waitUntil(async () => (await keysNamed(clientName)).length > 0, 10_000);
    await runInDurableObject(objectOf(started), (_object, state) => state.abort("killed")).catch(
      () => undefined,
    );
    expect((await polled).status).toBe(500);
    return started;
  }

  it("is made anew at the next poll, and the key that nobody got is no more", async () => {
    const started = await endedHalfWay("killed-and-back");
    const [lost] = await keysNamed("killed-and-back");
    const { body } = await poll(started.device_code);
    expect((await api(body["token"] ?? "", "GET", "/sites")).status).toBe(200);
    const kept = await keysNamed("killed-and-back");
    expect(kept).toHaveLength(1);
    expect(kept).not.toEqual([lost]);
    expect((await poll(started.device_code)).status).toBe(404);
    await runDurableObjectAlarm(objectOf(started));
    expect(await keysNamed("killed-and-back")).toEqual(kept);
  });

  it("and is never asked for again leaves no key once the code has expired", async () => {
    const started = await endedHalfWay("killed-for-good");
    await runDurableObjectAlarm(objectOf(started));
    expect(await keysNamed("killed-for-good")).toEqual([]);
    expect((await poll(started.device_code)).status).toBe(404);
  });
});

describe("guesses of device codes", () => {
  const look = async (own: string, code: string, headers: Record<string, string> = fromNewAddress()) =>
    (await call(`/device?code=${code}`, { headers: { Cookie: own, ...headers } })).status;

  /** Somebody of their own: nobody else's guesses count for them. */
  const somebody = () => {
    const ctx = contextOf(bindings, { type: "system" }, () => undefined);
    return sessionOf(ctx.newId("account"), ctx.newMark());
  };

  it("end after ten wrong ones of an account: from then on the right one is refused as well", async () => {
    const [own, started] = [await somebody(), await start()];
    for (let guess = 0; guess < 10; guess++) expect(await look(own, "BBBB-BBBB")).toBe(404);
    expect(await look(own, "BBBB-BBBB")).toBe(429);
    expect(await look(own, started.user_code)).toBe(429);
    expect((await decide(own, started.user_code, "approve")).status).toBe(429);
    expect(await poll(started.device_code)).toEqual({ status: 200, body: { status: "pending" } });
    // Whoever has not guessed approves it all the same.
    expect((await decide(await somebody(), started.user_code, "approve")).status).toBe(200);
  });

  it("made all at once are no more than ten", async () => {
    const own = await somebody();
    const guesses = await Promise.all(Array.from({ length: 30 }, () => look(own, "BBBB-BBBB")));
    expect(guesses.filter((status) => status === 404)).toHaveLength(10);
  });

  it("end after twenty wrong ones from an address, whoever makes them", async () => {
    const [started, from] = [await start(), { "CF-Connecting-IP": "203.0.113.20" }];
    for (let person = 0; person < 2; person++) {
      const own = await somebody();
      for (let guess = 0; guess < 10; guess++) expect(await look(own, "BBBB-BBBB", from)).toBe(404);
    }
    const own = await somebody();
    for (let guess = 0; guess < 10; guess++) expect(await look(own, started.user_code, from)).toBe(429);
    // What an address is refused costs its people none of their own guesses.
    expect(await look(own, started.user_code)).toBe(200);
  });

  it("of many accounts from many addresses hold up nobody else", async () => {
    const [own, started] = [await somebody(), await start()];
    const guessers = await Promise.all(Array.from({ length: 31 }, somebody));
    const guessed = await Promise.all(
      guessers.map(async (guesser) =>
        Promise.all(Array.from({ length: 10 }, () => look(guesser, "BBBB-BBBB"))),
      ),
    );
    expect(guessed.flat().every((status) => status === 404)).toBe(true);
    expect(await look(own, started.user_code)).toBe(200);
    expect((await decide(own, started.user_code, "approve")).status).toBe(200);
  });

  it("are not what a right code is: it may be looked at as often as a person likes", async () => {
    const [own, started] = [await somebody(), await start()];
    for (let visit = 0; visit < 25; visit++)
      expect(await look(own, started.user_code, { "CF-Connecting-IP": "203.0.113.21" })).toBe(200);
  });

  it("are made on a page that is limited per address also for who is not signed in", async () => {
    const from = { "CF-Connecting-IP": "203.0.113.22" };
    const visits = await Promise.all(
      Array.from({ length: 610 }, () => call("/device", { headers: from, redirect: "manual" })),
    );
    expect(visits.filter(({ status }) => status === 429)).toHaveLength(10);
  });
});
