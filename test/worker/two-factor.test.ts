import { createHash } from "node:crypto";
import { createOTP } from "@better-auth/utils/otp";
import { base32 } from "@better-auth/utils/base32";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { hashPassword } from "../../worker/adapters/password.ts";
import { contextOf } from "../../worker/compose.ts";
import { account, api, bindings, call, operator, operatorCookie, siteUrl, uniqueName } from "./service.ts";
import { ownerOf } from "./assistant.ts";
import { fieldsOf, visitorWith } from "./pages.ts";

const password = "correct horse battery";
const path = "/account/two-factor";
const minute = 60_000;

const run = (sql: string, ...values: unknown[]) =>
  bindings.DB.prepare(sql)
    .bind(...values)
    .run();

/** Each time another client address, so that limits of addresses do not mix. */
let addresses = 0;
const newAddress = () => `192.0.2.${++addresses}`;

/** The clock runs on, as the queue of passwords needs it; a test may push it forward. */
let pushedMs = 0;
const RealDate = Date;
class PushedDate extends RealDate {
  constructor(...given: [] | [string | number]) {
    super(given.length === 0 ? RealDate.now() + pushedMs : given[0]);
  }
  static override now = () => RealDate.now() + pushedMs;
}
beforeEach(() => {
  pushedMs += 10 * minute;
  vi.stubGlobal("Date", PushedDate);
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});
const pass = (ms: number) => (pushedMs += ms);

/** A browser: it keeps cookies. */
function browser() {
  const jar = new Map<string, string>();
  const address = newAddress();
  async function request(to: string, init: RequestInit = {}) {
    const response = await call(to, {
      ...init,
      redirect: "manual",
      headers: {
        Origin: siteUrl,
        Accept: "text/html",
        "CF-Connecting-IP": address,
        Cookie: [...jar].map(([name, value]) => `${name}=${value}`).join("; "),
        ...(init.headers as Record<string, string> | undefined),
      },
    });
    for (const set of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      if (value === "" || /Max-Age=0/i.test(set)) jar.delete(name);
      else jar.set(name, value);
    }
    const { status, headers } = response;
    return { status, location: headers.get("Location"), text: await response.text() };
  }
  const post = (to: string, fields: Record<string, string>) =>
    request(to, { method: "POST", body: new URLSearchParams(fields) });
  return {
    get: (to: string) => request(to),
    post,
    form: (to: string, form: string, fields: Record<string, string>) => post(to, { form, ...fields }),
    json: (to: string, body: object) =>
      request(to, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
      }),
    isSignedIn: async () => (await request("/api/v1/sites")).status === 200,
  };
}
type Browser = ReturnType<typeof browser>;

let hash: Promise<string> | undefined;
/** A person with a password, and a browser that has signed in with it. */
async function person() {
  hash ??= hashPassword(password, new Uint8Array(16));
  const key = await account();
  const accountId = await ownerOf(key);
  const email = `${uniqueName("person")}@example.com`;
  await run("UPDATE accounts SET email = ?, email_verified = 1 WHERE id = ?", email, accountId);
  await run(
    `INSERT INTO identities (id, account_id, provider_id, provider_account_id, password, created_at, updated_at)
    VALUES (?, ?, 'credential', ?, ?, 1, 1)`,
    uniqueName("identity"),
    accountId,
    accountId,
    await hash,
  );
  const own = browser();
  expect((await own.post("/sign-in", { email, password })).location).toBe("/");
  return { key, accountId, email, own };
}

const codeOf = (uri: string) => {
  const secret = new TextDecoder().decode(base32.decode(new URL(uri).searchParams.get("secret") ?? ""));
  return createOTP(secret, { period: 30 }).hotp(Math.floor(Date.now() / 30_000));
};

/** The page that shows the secret. */
async function begin(own: Browser) {
  const page = await own.form(path, "begin", { password });
  expect(page.status).toBe(200);
  const { uri = "", codes = "" } = fieldsOf(page.text, "confirm");
  return { page, uri, codes };
}

/** A person who signs in with a second step, its first code used. */
async function withTwoSteps() {
  const someone = await person();
  const { uri, codes } = await begin(someone.own);
  const on = await someone.own.form(path, "confirm", { uri, codes, code: await codeOf(uri) });
  expect([on.status, on.location]).toEqual([303, path]);
  pass(minute);
  return { ...someone, uri, codes: codes.split(" ") };
}

/** A browser of theirs after the password. */
async function afterPassword(email: string) {
  const fresh = browser();
  const answer = await fresh.post("/sign-in", { email, password });
  expect([answer.status, answer.location]).toEqual([303, "/sign-in/second-step"]);
  return fresh;
}

describe("setting up the second step", () => {
  it("shows a QR code and the secret, and turns on when the app's code is right; recovery codes follow once", async () => {
    const { own, email } = await person();
    const { page, uri, codes } = await begin(own);
    expect(page.text).toMatch(/<svg class="qr"[^>]*>.*<path d="M/s);
    expect(new URL(uri).searchParams.get("issuer")).toBe("Berth");
    expect(decodeURIComponent(uri)).toContain(email);
    expect(codes.split(" ")).toHaveLength(10);
    expect(page.text.split(codes).length, "in the form only").toBe(2);

    const wrong = await own.form(path, "confirm", { uri, codes, code: "000000" });
    expect(wrong.status).toBe(400);
    expect(wrong.text).toMatch(/name="code"[^>]*aria-invalid="true"/);
    expect(wrong.text).toContain('class="qr"');
    expect((await own.get(path)).text).not.toContain('id="form-off"');

    const on = await own.form(path, "confirm", { uri, codes, code: await codeOf(uri) });
    expect([on.status, on.location]).toEqual([303, path]);
    const shown = await own.get(path);
    expect(shown.text).toContain(codes);
    expect(shown.text).toContain('id="form-off"');
    expect((await own.get(path)).text).not.toContain(codes);
  });

  it("needs the password, and changes nothing before a code was right", async () => {
    const { own, email } = await person();
    const refused = await own.form(path, "begin", { password: "wrong" });
    expect(refused.status).toBe(400);
    expect(refused.text).toMatch(/name="password"[^>]*aria-invalid="true"/);
    await begin(own);
    expect((await browser().post("/sign-in", { email, password })).location).toBe("/");
  });

  it("can begin again as long as it is not on, with another secret; afterwards it cannot", async () => {
    const { own } = await person();
    const [first, second] = [await begin(own), await begin(own)];
    expect(second.uri).not.toBe(first.uri);
    const old = await own.form(path, "confirm", { ...first, page: "", code: await codeOf(first.uri) });
    expect(old.status).toBe(400);
    const { uri, codes } = second;
    expect((await own.form(path, "confirm", { uri, codes, code: await codeOf(uri) })).status).toBe(303);
    expect((await own.json("/api/auth/two-factor/enable", { password })).status).toBe(400);
  });

  it("keeps the secret and the codes sealed, also under a new key", async () => {
    const { accountId, uri, codes, email } = await withTwoSteps();
    const read = () =>
      bindings.DB.prepare("SELECT * FROM two_factors WHERE account_id = ?")
        .bind(accountId)
        .first<Record<"id" | "secret_sealed" | "backup_codes_sealed", string>>();
    const row = await read();
    const { secrets } = contextOf(bindings, { type: "system" }, () => undefined);
    const secret = secrets.open(row?.secret_sealed ?? "", `two_factors.secret:${row?.id ?? ""}`);
    expect(base32.encode(secret, { padding: false })).toBe(new URL(uri).searchParams.get("secret"));
    expect(JSON.stringify(row)).not.toContain(secret);
    expect(JSON.stringify(row)).not.toContain(codes[0]);
    // As after SECRET_KEY was replaced: sealed under the old key, which still opens, and then sealed anew.
    const { secretBox } = await import("../../worker/adapters/secret-box.ts");
    const old = secretBox(["B".repeat(43)], (count) => crypto.getRandomValues(new Uint8Array(count)));
    await run(
      "UPDATE two_factors SET secret_sealed = ? WHERE id = ?",
      old.seal(secret, `two_factors.secret:${row?.id ?? ""}`),
      row?.id,
    );
    const rotated = await api<{ unreadable: string[] }>(await operator(), "POST", "/secrets/rotate", {
      cursor: "two_factors.secret/",
    });
    expect(rotated.body.unreadable).toEqual([]);
    expect(secrets.isCurrent((await read())?.secret_sealed ?? "")).toBe(true);
    const fresh = await afterPassword(email);
    expect((await fresh.post("/sign-in/second-step", { code: await codeOf(uri) })).status).toBe(303);
  });
});

describe("signing in with a second step", () => {
  it("gives no session for the password alone, and one after the code, where it was going to", async () => {
    const { email, uri } = await withTwoSteps();
    const fresh = browser();
    const asked = await fresh.post("/sign-in", { email, password, next: "/billing" });
    expect(asked.location).toBe("/sign-in/second-step?next=%2Fbilling");
    expect(await fresh.isSignedIn()).toBe(false);
    expect((await fresh.get("/")).status).not.toBe(303);
    const page = await fresh.get(asked.location ?? "");
    expect([page.status, page.text.includes('value="/billing"')]).toEqual([200, true]);
    const code = await codeOf(uri);
    const spaced = `${code.slice(0, 3)} ${code.slice(3)}`;
    const done = await fresh.post("/sign-in/second-step", { code: spaced, next: "/billing" });
    expect([done.status, done.location]).toEqual([303, "/billing"]);
    expect(await fresh.isSignedIn()).toBe(true);
  });

  it("answers the API of browsers alike: no session cookie before the second step", async () => {
    const { email, accountId } = await withTwoSteps();
    const before = await bindings.DB.prepare("SELECT count(*) AS n FROM sessions WHERE account_id = ?")
      .bind(accountId)
      .first("n");
    const fresh = browser();
    const answer = await fresh.json("/api/auth/sign-in/email", { email, password });
    expect(JSON.parse(answer.text)).toEqual({ twoFactorRedirect: true, twoFactorMethods: ["totp"] });
    expect(await fresh.isSignedIn()).toBe(false);
    expect(
      await bindings.DB.prepare("SELECT count(*) AS n FROM sessions WHERE account_id = ?")
        .bind(accountId)
        .first("n"),
    ).toBe(before);
  });

  it("refuses a wrong code, one without the password before it, and one that was used", async () => {
    const { email, uri } = await withTwoSteps();
    const [first, second] = [await afterPassword(email), await afterPassword(email)];
    const wrong = await first.post("/sign-in/second-step", { code: "000000" });
    expect([wrong.status, wrong.text.includes("is wrong")]).toEqual([401, true]);
    const stranger = await browser().post("/sign-in/second-step", { code: await codeOf(uri) });
    expect([stranger.status, stranger.text.includes("Start again")]).toEqual([401, true]);
    const code = await codeOf(uri);
    expect((await first.post("/sign-in/second-step", { code })).status).toBe(303);
    expect((await second.post("/sign-in/second-step", { code })).status).toBe(401);
    expect([await first.isSignedIn(), await second.isSignedIn()]).toEqual([true, false]);
    pass(minute);
    const third = await afterPassword(email);
    expect((await third.post("/sign-in/second-step", { code })).status, "too old").toBe(401);
  });

  it("lets a code be used once by two browsers at the same moment", async () => {
    const { email, uri } = await withTwoSteps();
    const both = [await afterPassword(email), await afterPassword(email)];
    const code = await codeOf(uri);
    const answers = await Promise.all(both.map((one) => one.post("/sign-in/second-step", { code })));
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([303, 401]);
    expect((await Promise.all(both.map((one) => one.isSignedIn()))).filter(Boolean)).toHaveLength(1);
  });

  it("takes each recovery code once", async () => {
    const { email, codes } = await withTwoSteps();
    const [code = "", other = ""] = codes;
    const first = await afterPassword(email);
    expect((await first.post("/sign-in/second-step", { code })).status).toBe(303);
    expect(await first.isSignedIn()).toBe(true);
    const second = await afterPassword(email);
    expect((await second.post("/sign-in/second-step", { code })).status).toBe(401);
    expect((await second.post("/sign-in/second-step", { code: other })).status).toBe(303);
  });

  it("is not guessed: five codes a sign-in, ten an account, then not even the right one for fifteen minutes", async () => {
    const { email, uri } = await withTwoSteps();
    const wrong = async (fresh: Browser, code: number) =>
      (await fresh.post("/sign-in/second-step", { code: String(100_000 + code) })).text;
    const first = await afterPassword(email);
    for (let tries = 0; tries < 5; tries++) expect(await wrong(first, tries)).toContain("is wrong");
    expect(await wrong(first, 5)).toContain("Start again");
    const second = await afterPassword(email);
    for (let tries = 0; tries < 5; tries++) await wrong(second, tries);
    const third = await afterPassword(email);
    const refused = await third.post("/sign-in/second-step", { code: await codeOf(uri) });
    expect([refused.status, refused.text.includes("fifteen minutes")]).toEqual([401, true]);
    pass(16 * minute);
    const fourth = await afterPassword(email);
    expect((await fourth.post("/sign-in/second-step", { code: await codeOf(uri) })).status).toBe(303);
  });

  it("counts wrong codes by address as well", async () => {
    const fresh = browser();
    const statuses = [];
    for (let tries = 0; tries < 32; tries++)
      statuses.push((await fresh.json("/api/auth/two-factor/verify-totp", { code: "000000" })).status);
    expect(new Set(statuses.slice(0, 30))).toEqual(new Set([401]));
    expect(statuses.at(-1)).toBe(429);
  });

  it("leaves API keys as they are", async () => {
    const { key } = await withTwoSteps();
    expect((await api(key, "GET", "/sites")).status).toBe(200);
  });

  it("is asked for after GitHub, too", async () => {
    const { accountId, uri } = await withTwoSteps();
    await run(
      `INSERT INTO identities (id, account_id, provider_id, provider_account_id, created_at, updated_at)
      VALUES (?, ?, 'github', ?, 1, 1)`,
      uniqueName("identity"),
      accountId,
      String(addresses),
    );
    const email = await bindings.DB.prepare("SELECT email FROM accounts WHERE id = ?")
      .bind(accountId)
      .first<string>("email");
    vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
      const { pathname } = new URL(new Request(input, init).url);
      if (pathname === "/login/oauth/access_token")
        return Response.json({ access_token: "token", token_type: "bearer", scope: "user:email" });
      if (pathname === "/user/emails") return Response.json([{ email, primary: true, verified: true }]);
      return Response.json({ id: addresses, login: "ada", name: "Ada", email, avatar_url: "" });
    });
    const fresh = browser();
    const asked = await fresh.post("/sign-in/github", {});
    const state = new URL(asked.location ?? "").searchParams.get("state") ?? "";
    const back = await fresh.get(`/api/auth/callback/github?code=1&state=${encodeURIComponent(state)}`);
    expect(back.location).toBe("/sign-in/second-step");
    expect(await fresh.isSignedIn()).toBe(false);
    expect((await fresh.post("/sign-in/second-step", { code: await codeOf(uri) })).status).toBe(303);
    expect(await fresh.isSignedIn()).toBe(true);
  });
});

describe("an owner without the app and the recovery codes", () => {
  it("signs in with the password alone once an operator has confirmed to turn the second step off, and is mailed", async () => {
    const { accountId, email, own, key } = await withTwoSteps();
    const mails = () =>
      bindings.DB.prepare("SELECT subject FROM mails WHERE account_id = ? ORDER BY rowid")
        .bind(accountId)
        .all<{ subject: string }>();
    expect((await mails()).results).toEqual([{ subject: "Two-step sign-in was turned on" }]);
    const halfWay = await afterPassword(email);
    const operators = visitorWith(await operatorCookie());
    const page = `/operator/accounts/${accountId}`;
    expect((await operators.get(page)).text).toContain("Turn off two-step sign-in");
    const refused = await operators.send(page, "two-factor", { confirm: "somebody@example.com" });
    expect(refused.status).toBe(400);
    expect(refused.text).toMatch(/name="confirm"[^>]*aria-invalid="true"/);
    expect(await own.isSignedIn()).toBe(true);
    const done = await operators.send(page, "two-factor", { confirm: email });
    expect(done.said).toContain("Two-step sign-in is off");
    expect((await operators.get(page)).text).not.toContain('id="form-two-factor"');

    expect(await own.isSignedIn()).toBe(false);
    expect((await halfWay.post("/sign-in/second-step", { code: "000000" })).status).toBe(401);
    expect(await halfWay.isSignedIn()).toBe(false);
    expect((await api(key, "GET", "/sites")).status).toBe(200);
    const again = browser();
    expect((await again.post("/sign-in", { email, password })).location).toBe("/");
    expect((await mails()).results.slice(1)).toEqual([{ subject: "Two-step sign-in was turned off" }]);
    const { body } = await api<{ data: object[] }>(key, "GET", "/activity");
    expect(body.data[0]).toMatchObject({ operation: "disableTwoFactor", actor: "operator" });

    // Asked once more, it ends no session and sends nothing.
    const asked = await api(await operator(), "POST", `/accounts/${accountId}/disable-two-factor`);
    expect(asked.status).toBe(200);
    expect(await again.isSignedIn()).toBe(true);
    expect((await mails()).results).toHaveLength(2);
  });

  it("is helped by operators only, who cannot turn off their own so", async () => {
    const { accountId, key, own } = await withTwoSteps();
    const path = (id: string) => `/accounts/${id}/disable-two-factor`;
    expect((await api(key, "POST", path(accountId))).status).toBe(403);
    expect(await own.isSignedIn()).toBe(true);
    const mine = await operator();
    expect((await api(mine, "POST", path(await ownerOf(mine)))).status).toBe(409);
    expect((await api(mine, "POST", path("acc_none"))).status).toBe(404);
  });
});

describe("with the second step on, a borrowed browser", () => {
  const keysOf = (accountId: string) =>
    bindings.DB.prepare("SELECT count(*) AS n FROM api_keys WHERE account_id = ?")
      .bind(accountId)
      .first<number>("n");

  it("cannot turn it off without the password and a code, on the page or below /api/auth", async () => {
    const { own, email, uri } = await withTwoSteps();
    for (const fields of [
      { password, code: "" },
      { password, code: "000000" },
    ])
      expect((await own.form(path, "off", fields)).text).toMatch(/name="code"[^>]*aria-invalid="true"/);
    expect((await own.json("/api/auth/two-factor/disable", { password })).status).toBe(400);
    expect((await own.json("/api/auth/two-factor/disable", { password, code: 5 })).status).toBe(400);
    const wrong = await own.form(path, "off", { password: "wrong", code: await codeOf(uri) });
    expect(wrong.text).toMatch(/name="password"[^>]*aria-invalid="true"/);
    await afterPassword(email);
    pass(minute);
    const off = await own.form(path, "off", { password, code: await codeOf(uri) });
    expect([off.status, off.location]).toEqual([303, path]);
    expect((await browser().post("/sign-in", { email, password })).location).toBe("/");
  });

  it("cannot see the secret or make recovery codes; with a code the old ones stop", async () => {
    const { own, email, uri, codes } = await withTwoSteps();
    expect((await own.json("/api/auth/two-factor/get-totp-uri", { password })).status).toBe(404);
    expect((await own.json("/api/auth/two-factor/generate-backup-codes", { password })).status).toBe(400);
    expect((await own.form(path, "codes", { password, code: await codeOf(uri) })).status).toBe(303);
    const fresh = [...(await own.get(path)).text.matchAll(/(?<![\w-])\w{5}-\w{5}(?![\w-])/g)].map(
      ([code]) => code,
    );
    expect(fresh).toHaveLength(10 * 2);
    const again = await afterPassword(email);
    expect((await again.post("/sign-in/second-step", { code: codes[3] ?? "" })).status).toBe(401);
    expect((await again.post("/sign-in/second-step", { code: fresh[3] ?? "" })).status).toBe(303);
  });

  it("cannot change the address without a code", async () => {
    const { own, uri } = await withTwoSteps();
    const mails: string[] = [];
    vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
      mails.push(await new Request(input, init).text());
      return Response.json({ id: "1" });
    });
    const email = `${uniqueName("other")}@example.com`;
    expect((await own.form("/account", "email", { email })).status).toBe(400);
    expect((await own.json("/api/auth/change-email", { newEmail: email })).status).toBe(400);
    expect(mails).toEqual([]);
    expect((await own.form("/account", "email", { email, code: await codeOf(uri) })).status).toBe(303);
    await vi.waitFor(() => expect(mails).toHaveLength(1));
  });

  it("cannot authorize a device without a code; denying takes none", async () => {
    const { own, uri, codes } = await withTwoSteps();
    const started = async () => {
      const response = await call("/api/v1/auth/device", {
        method: "POST",
        headers: { "CF-Connecting-IP": newAddress() },
      });
      return (await response.json<{ user_code: string }>()).user_code;
    };
    const code = await started();
    expect((await own.get(`/device?code=${code}`)).text).toContain('name="secondFactor"');
    for (const secondFactor of ["", "000000"]) {
      const refused = await own.post("/device", { code, decision: "approve", secondFactor });
      expect([refused.status, refused.text.includes("is wrong or was used")]).toEqual([400, true]);
    }
    const secondFactor = await codeOf(uri);
    const approved = await own.post("/device", { code, decision: "approve", secondFactor });
    expect(approved.text).toContain("The device is authorized");
    const next = await started();
    const replayed = await own.post("/device", { code: next, decision: "approve", secondFactor });
    expect(replayed.status, "the same code again").toBe(400);
    const byRecovery = { code: next, decision: "approve", secondFactor: codes[0] ?? "" };
    expect((await own.post("/device", byRecovery)).text).toContain("The device is authorized");
    const denied = await own.post("/device", { code: await started(), decision: "deny" });
    expect(denied.text).toContain("The request was denied");
  });

  it("cannot allow a program without a code; denying takes none", async () => {
    const { own, uri, codes, accountId } = await withTwoSteps();
    const redirectUri = "http://127.0.0.1:5123/callback";
    const registered = await own.json("/oauth/register", { redirect_uris: [redirectUri] });
    const { client_id: clientId } = JSON.parse(registered.text) as { client_id: string };
    const verifier = "v".repeat(43);
    const consent = `/oauth/authorize?${new URLSearchParams({
      response_type: "code",
      client_id: clientId,
      redirect_uri: redirectUri,
      code_challenge: createHash("sha256").update(verifier).digest("base64url"),
      code_challenge_method: "S256",
    }).toString()}`;
    expect((await own.get(consent)).text).toContain('name="secondFactor"');
    for (const secondFactor of ["", "000000"]) {
      const refused = await own.post(consent, { decision: "approve", secondFactor });
      expect([refused.status, refused.text.includes("is wrong or was used")]).toEqual([400, true]);
      expect([refused.text.includes("code="), refused.text.includes('name="secondFactor"')]).toEqual([
        false,
        true,
      ]);
    }
    const secondFactor = await codeOf(uri);
    const approved = await own.post(consent, { decision: "approve", secondFactor });
    expect(approved.text).toContain("The program is allowed");
    const replayed = await own.post(consent, { decision: "approve", secondFactor });
    expect(replayed.status, "the same code again").toBe(400);
    const byRecovery = { decision: "approve", secondFactor: codes[0] ?? "" };
    expect((await own.post(consent, byRecovery)).text).toContain("The program is allowed");
    expect((await own.post(consent, { decision: "deny" })).text).toContain("The request was denied");
    expect(await keysOf(accountId)).toBe(1);
    const [, code = ""] = /[?&;]code=([\w.-]+)/.exec(approved.text) ?? [];
    const exchanged = await own.post("/oauth/token", {
      grant_type: "authorization_code",
      code,
      redirect_uri: redirectUri,
      client_id: clientId,
      code_verifier: verifier,
    });
    expect(JSON.parse(exchanged.text)).toMatchObject({ token_type: "Bearer" });
    expect(await keysOf(accountId)).toBe(2);
  });

  it("cannot make a key without a code, on the page or by the API", async () => {
    const { own, uri, accountId } = await withTwoSteps();
    expect((await own.get("/account/keys")).text).toContain('name="code"');
    for (const code of ["", "000000"]) {
      const refused = await own.form("/account/keys", "create", { name: "Mine", code });
      expect(refused.status).toBe(400);
      expect(refused.text).toMatch(/name="code"[^>]*aria-invalid="true"/);
    }
    expect((await own.json("/api/v1/keys", { name: "Mine" })).status).toBe(400);
    expect((await own.json("/api/v1/keys", { name: "Mine", code: "000000" })).status).toBe(400);
    expect(await keysOf(accountId)).toBe(1);
    const code = await codeOf(uri);
    const made = await own.form("/account/keys", "create", { name: "Mine", code });
    expect([made.status, made.location]).toEqual([303, "/account/keys"]);
    expect((await own.json("/api/v1/keys", { name: "Mine", code })).status, "the same code again").toBe(400);
    pass(minute);
    expect((await own.json("/api/v1/keys", { name: "Mine", code: await codeOf(uri) })).status).toBe(201);
    expect(await keysOf(accountId)).toBe(3);
    const recorded = await bindings.DB.prepare(
      "SELECT group_concat(arguments) AS text FROM activity WHERE account_id = ?",
    )
      .bind(accountId)
      .first<string>("text");
    expect(recorded).not.toContain(code);
  });

  it("cannot delete the account without a code", async () => {
    const { own, email, uri, accountId } = await withTwoSteps();
    const kept = async () =>
      bindings.DB.prepare("SELECT email FROM accounts WHERE id = ?").bind(accountId).first<string>("email");
    const refused = await own.form("/account", "delete", { confirm: email });
    expect(refused.status).toBe(400);
    expect(refused.text).toMatch(/name="code"[^>]*aria-invalid="true"/);
    expect((await own.json("/api/v1/account/delete", { email })).status).toBe(400);
    expect((await own.json("/api/v1/account/delete", { email, code: "000000" })).status).toBe(400);
    expect(await kept()).toBe(email);
    const deleted = await own.form("/account", "delete", { confirm: email, code: await codeOf(uri) });
    expect([deleted.status, deleted.location]).toEqual([303, "/sign-in"]);
    expect(await kept()).not.toBe(email);
  });

  it.each(["app", "recovery"] as const)(
    "does not use up a code of the %s by what is refused for another reason",
    async (kind) => {
      const { own, email, uri, codes, accountId } = await withTwoSteps();
      const code = kind === "app" ? await codeOf(uri) : (codes[0] ?? "");
      const other = uniqueName("other");
      for (const [to, form, fields] of [
        [path, "off", { password: "wrong" }],
        [path, "codes", { password: "wrong" }],
        ["/account", "email", { email: "no address" }],
        ["/account", "delete", { confirm: `${other}@example.com` }],
      ] as const) {
        const refused = await own.form(to, form, { ...fields, code });
        expect([form, refused.status, /name="code"[^>]*aria-invalid/.test(refused.text)]).toEqual([
          form,
          400,
          false,
        ]);
      }
      const late = await own.post("/device", {
        code: "BBBB-BBBB",
        decision: "approve",
        secondFactor: code,
      });
      expect(late.status).toBe(404);
      expect((await own.form("/account", "delete", { confirm: email, code })).location).toBe("/sign-in");
      expect(
        await bindings.DB.prepare("SELECT deleted_at > 0 AS gone FROM accounts WHERE id = ?")
          .bind(accountId)
          .first<number>("gone"),
      ).toBe(1);
    },
  );

  it("is locked out after ten wrong codes there, too", async () => {
    const { own, uri } = await withTwoSteps();
    for (let tries = 0; tries < 10; tries++)
      expect((await own.form("/account", "email", { email: "a@example.com", code: "000000" })).status).toBe(
        400,
      );
    const locked = await own.form("/account", "email", { email: "a@example.com", code: await codeOf(uri) });
    expect(locked.status).toBe(429);
  });
});
