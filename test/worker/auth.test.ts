import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { app } from "../../worker/app.ts";
import { hashPassword } from "../../worker/adapters/password.ts";
import { sha256Hex } from "../../worker/domain/tokens.ts";
import type { Env } from "../../worker/env.ts";
import { accountRow, insert, newId, write, type Row } from "./billing-rows.ts";
import { bindings, signedCookie, siteUrl, uniqueName } from "./service.ts";
import { rows } from "./stripe-service.ts";

// What is asked of better-auth itself, in requests that arrive at once: which of them count, what they write, what is answered.
const password = "correct horse battery";
const secureUrl = "https://berth.example";
const day = 86_400_000;

/** Each request comes ten seconds after the one before, as the queue of passwords needs it. */
let pushedMs = 0;
const RealDate = Date;
class PushedDate extends RealDate {
  constructor(...given: [] | [string | number]) {
    super(given.length === 0 ? RealDate.now() + pushedMs : given[0]);
  }
  static override now = () => RealDate.now() + pushedMs;
}
beforeEach(() => void vi.stubGlobal("Date", PushedDate));
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

type Mail = { to: string[]; subject: string; text: string };
/** The Worker with other bindings; its limits are not counted, but noted. */
function service(
  changes: Record<string, string | undefined | D1Database> = {},
  waitSeconds: Record<string, number> = {},
) {
  const counted: string[] = [];
  const mails: Mail[] = [];
  const deferred: Promise<unknown>[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    mails.push(await new Request(input, init).json());
    return new Response("{}");
  });
  const counter = (name: string) => ({
    take: async () => {
      counted.push(name);
      return waitSeconds[name.split(":")[0] ?? ""] ?? 0;
    },
    giveBack: async () => void counted.push(`not ${name}`),
  });
  const env = {
    ...bindings,
    ...changes,
    RATE_LIMIT: { idFromName: (name: string) => name, get: counter },
  } as unknown as Env;
  const origin = changes["SITE_URL"] === undefined ? siteUrl : secureUrl;
  const execution = {
    waitUntil: (work: Promise<unknown>) => void deferred.push(work),
    passThroughOnException: () => undefined,
    props: {},
  };
  return {
    counted,
    mails,
    /** What is done after the answer, and so many mails by then. */
    done: async (count = mails.length) => {
      while (deferred.length > 0) await deferred.shift();
      await vi.waitFor(() => expect(mails.map(({ subject }) => subject)).toHaveLength(count), 10_000);
    },
    ask: async (path: string, body?: object | string, headers: Record<string, string> = {}) => {
      pushedMs += 10_000;
      const response = await app.fetch(
        new Request(path.startsWith("http") ? path : `${origin}/api/auth${path}`, {
          method: body === undefined ? "GET" : "POST",
          headers: {
            ...(body !== undefined && { "Content-Type": "application/json", Origin: origin }),
            "CF-Connecting-IP": "192.0.2.7",
            ...headers,
          },
          ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
          redirect: "manual",
        }),
        env,
        execution,
      );
      const text = await response.text();
      return {
        status: response.status,
        headers: response.headers,
        cookies: response.headers.getSetCookie(),
        text,
        body: text.startsWith("{") ? (JSON.parse(text) as Record<string, unknown>) : {},
      };
    },
  };
}
const noMail = { MAIL_ENDPOINT: undefined };

let hash: Promise<string> | undefined;
/** An account with a password. */
async function person(more: Row = {}) {
  const accountId = newId("account");
  const email = `${uniqueName("person")}@example.com`;
  hash ??= hashPassword(password, new Uint8Array(16));
  await write(
    accountRow(accountId, { email, email_verified: 1, ...more }),
    insert("identities", {
      id: uniqueName("identity"),
      account_id: accountId,
      provider_id: "credential",
      provider_account_id: accountId,
      password: await hash,
      created_at: 1,
      updated_at: 1,
    }),
  );
  return { accountId, email };
}
/** A session of it that was used a moment ago. */
async function session(accountId: string, more: Row = {}) {
  const [id, token] = [newId("session"), uniqueName("token")];
  const now = Date.now();
  await write(
    insert("sessions", {
      id,
      token_hash: sha256Hex(token),
      account_id: accountId,
      created_at: now,
      updated_at: now,
      expires_at: now + 29.5 * day,
      ...more,
    }),
  );
  return { id, token, cookie: { Cookie: await signedCookie(token) } };
}
const sessionsOf = (accountId: string) =>
  rows<{ id: string; expires_at: number }>("SELECT * FROM sessions WHERE account_id = ?", accountId);

describe("a session", () => {
  beforeEach(() => void vi.spyOn(console, "error").mockImplementation(() => undefined));

  it.each([
    ["http", {}, "berth_session", "berth_device"],
    [
      "https",
      { SITE_URL: secureUrl, WEBHOOK_HOST: secureUrl },
      "__Host-berth_session",
      "__Host-berth_device",
    ],
  ])(
    "by %s is a cookie for thirty days that no script reads and no other host sets",
    async (name, env, cookie, device) => {
      const { accountId, email } = await person();
      const { ask } = service(env);
      const answer = await ask(
        "/sign-in/email",
        { email: ` ${email.toUpperCase()}`.trim(), password },
        { "User-Agent": "Firefox" },
      );
      expect(answer.status).toBe(200);
      const secure = name === "https" ? "(?=.*; Secure)" : "(?!.*Secure)";
      expect(answer.cookies).toEqual([
        expect.stringMatching(
          new RegExp(
            `^${cookie}=[^;]+%3D;(?=.*Max-Age=2592000)(?=.*Path=/(;|$))(?=.*HttpOnly)(?=.*SameSite=Lax)${secure}(?!.*Domain)`,
          ),
        ),
        expect.stringMatching(new RegExp(`^${device}=`)),
      ]);
      const token =
        decodeURIComponent(/=([^;]+)/.exec(answer.cookies[0] ?? "")?.[1] ?? "").split(".")[0] ?? "";
      const [row, ...more] = await sessionsOf(accountId);
      expect(more).toEqual([]);
      expect(row).toMatchObject({
        id: expect.stringMatching(/^ses_/),
        token_hash: sha256Hex(token),
        ip_address: "192.0.2.7",
        user_agent: "Firefox",
      });
      expect(Math.abs((row?.expires_at ?? 0) - Date.now() - 30 * day)).toBeLessThan(60_000);
      expect(answer.text).not.toContain(token);
      expect([answer.body["token"], answer.headers.get("Content-Type")]).toEqual([
        undefined,
        "application/json",
      ]);
    },
  );

  it("is told once a day that it goes on", async () => {
    const { accountId } = await person();
    const [fresh, old, over] = [
      await session(accountId, { expires_at: Date.now() + 29.2 * day }),
      await session(accountId, { expires_at: Date.now() + 28.8 * day }),
      await session(accountId, { expires_at: Date.now() - 1 }),
    ];
    const { ask } = service();
    const [first, second, third] = [
      await ask("/get-session", undefined, fresh.cookie),
      await ask("/get-session", undefined, old.cookie),
      await ask("/get-session", undefined, over.cookie),
    ];
    expect([first.body["session"], second.body["session"], third.text]).toEqual([
      expect.objectContaining({ id: fresh.id, userId: accountId }),
      expect.objectContaining({ id: old.id }),
      "null",
    ]);
    expect([first.text, second.text].join()).not.toMatch(/token/);
    const left = new Map(
      (await sessionsOf(accountId)).map(({ id, expires_at }) => [id, expires_at - Date.now()]),
    );
    expect(left.get(fresh.id)).toBeLessThan(29.3 * day);
    expect(left.get(old.id)).toBeGreaterThan(29.9 * day);
  });

  it("ends alone or with all of the account, and never another account's", async () => {
    const { accountId } = await person();
    const stranger = await person();
    const theirs = await session(stranger.accountId);
    const [first, second, third] = [
      await session(accountId),
      await session(accountId),
      await session(accountId),
    ];
    const { ask } = service();
    const left = async () => (await sessionsOf(accountId)).map(({ id }) => id).toSorted();
    expect(
      ((await ask("/list-sessions", undefined, first.cookie)).text.match(/"id":"ses_/g) ?? []).length,
    ).toBe(3);
    expect((await ask("/sign-out", {}, second.cookie)).status).toBe(200);
    expect(await left()).toEqual([first.id, third.id].toSorted());
    expect((await ask("/revoke-session", { token: theirs.token }, first.cookie)).status).toBe(200);
    expect((await ask("/revoke-session", { token: third.token }, first.cookie)).status).toBe(200);
    expect(await left()).toEqual([first.id]);
    const fourth = await session(accountId);
    // It would end none of them, since it finds them by their tokens.
    expect((await ask("/revoke-other-sessions", {}, fourth.cookie)).status).toBe(404);
    expect((await ask("/revoke-sessions", {}, fourth.cookie)).status).toBe(200);
    expect(await left()).toEqual([]);
    expect(await sessionsOf(stranger.accountId)).toHaveLength(1);
  });
});

describe("what counts against which limit", () => {
  it("is by address and by whom it is about, and a sign-in that succeeds is given back", async () => {
    const { email } = await person();
    const { ask, counted } = service();
    const after = async (path: string, body: object) => {
      counted.length = 0;
      await ask(path, body);
      return counted.filter((name) => !name.startsWith("address:"));
    };
    const about = `${email} 192.0.2.7`;
    const passwords = "passwords:192.0.2.7";
    expect(await after("/sign-in/email", { email, password })).toEqual([
      passwords,
      `signIn:${about}`,
      `not signIn:${about}`,
    ]);
    expect(await after("/sign-in/email", { email: email.toUpperCase(), password: "wrong" })).toEqual([
      passwords,
      `signIn:${about}`,
    ]);
    expect(await after("/sign-in/email", { email: 7 })).toEqual([passwords, "signIn: 192.0.2.7"]);
    expect(await after("/sign-up/email", {})).toEqual([passwords, "signUp:192.0.2.7"]);
    expect(await after("/reset-password", {})).toEqual([passwords]);
    expect(await after("/request-password-reset", { email: ` ${email}` })).toEqual([`mailed:${about}`]);
    expect(await after("/send-verification-email", {})).toEqual(["mailed: 192.0.2.7"]);
    expect(await after("/two-factor/verify-totp", { code: "1" })).toEqual(["secondStep:192.0.2.7"]);
    expect(await after("/two-factor/verify-backup-code", {})).toEqual(["secondStep:192.0.2.7"]);
    for (const path of ["/change-password", "/two-factor/enable"])
      expect(await after(path, {})).toEqual([passwords]);
    for (const path of ["/sign-out", "/revoke-sessions"]) expect(await after(path, {})).toEqual([]);
  });

  it("stops a request before anything is asked, and says when to come back", async () => {
    const { email, accountId } = await person();
    for (const limit of ["passwords", "signIn"]) {
      const { ask } = service({}, { [limit]: 17 });
      const refused = await ask("/sign-in/email", { email, password });
      expect([refused.status, refused.headers.get("Retry-After"), refused.cookies]).toEqual([429, "17", []]);
    }
    const { ask, mails, done } = service({}, { mailed: 9 });
    expect((await ask("/request-password-reset", { email })).status).toBe(429);
    await done();
    expect([mails, await sessionsOf(accountId)]).toEqual([[], []]);
  });
});

describe("an answer", () => {
  it("of better-auth that refuses is in the form of ours, with what it says", async () => {
    const { accountId, email } = await person();
    const { cookie } = await session(accountId);
    const { ask } = service(noMail);
    const wrong = await ask("/sign-in/email", { email, password: "wrong" });
    expect([wrong.status, wrong.headers.get("WWW-Authenticate"), wrong.headers.get("Content-Type")]).toEqual([
      401,
      "Bearer",
      "application/json",
    ]);
    expect(wrong.body).toEqual({
      error: "unauthorized",
      message: "Invalid email or password",
      code: "INVALID_EMAIL_OR_PASSWORD",
    });
    const taken = await ask("/sign-up/email", { name: "B", email, password });
    expect([taken.status, taken.headers.get("WWW-Authenticate")]).toEqual([409, null]);
    expect(taken.body).toMatchObject({ error: "conflict", reason: taken.body["message"] });
    expect(taken.body["message"]).toMatch(/already exists/i);
    const short = await ask("/change-password", { currentPassword: password, newPassword: "x" }, cookie);
    expect(short.status).toBe(400);
    expect(short.body).toMatchObject({
      error: "invalid_request",
      issues: [{ path: "", message: short.body["message"] }],
      code: "PASSWORD_TOO_SHORT",
    });
    expect([short.body["reason"], wrong.body["issues"], taken.body["issues"]]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    const none = await ask("/no-such-thing", {});
    expect([none.status, none.body]).toEqual([404, { error: "Not found" }]);
  });

  it("of better-auth that fails is ours, and in the log", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const { accountId } = await person();
    const { cookie } = await session(accountId);
    const DB = new Proxy(bindings.DB, {
      get: (db, name: keyof D1Database) =>
        name === "prepare"
          ? (query: string) => {
              if (/^\s*update/i.test(query)) throw new Error("disk full");
              return db.prepare(query);
            }
          : db[name],
    });
    const { ask, done } = service({ DB });
    const failed = await ask("/update-user", { name: "B" }, cookie);
    expect([failed.status, failed.body["error"]]).toEqual([500, "server_error"]);
    expect(JSON.stringify(log.mock.calls)).toContain("better-auth answered 500");
    await done();
  });

  it("names no account whose address is not confirmed: it is as unknown as any", async () => {
    const { email } = await person({ email_verified: 0 });
    const { ask, mails, done } = service();
    const [unconfirmed, unknown] = [
      await ask("/sign-in/email", { email, password }),
      await ask("/sign-in/email", { email: "nobody@example.com", password }),
    ];
    expect([unconfirmed.status, unconfirmed.body, unconfirmed.cookies]).toEqual([401, unknown.body, []]);
    expect(unconfirmed.headers.get("WWW-Authenticate")).toBe("Bearer");
    await done(1);
    // Its owner has another link, after the right password only.
    expect(mails.map(({ to, subject }) => [to, subject])).toEqual([[[email], "Confirm your email address"]]);
    await ask("/sign-in/email", { email, password: "wrong" });
    await done();
    expect(mails).toHaveLength(1);
  });

  it("by mail only is the same and at once, from pages of ours and from programs", async () => {
    const { email } = await person();
    const { ask, mails, done } = service();
    for (const headers of [{}, { Origin: siteUrl }]) {
      const asked = await ask(
        "/request-password-reset",
        { email, redirectTo: "https://evil.example" },
        headers,
      );
      expect([asked.status, asked.body]).toEqual([200, { status: true }]);
    }
    const foreign = await ask("/request-password-reset", { email }, { Origin: "https://evil.example" });
    expect([foreign.status, foreign.body["error"]]).toEqual([403, "forbidden"]);
    await done(2);
    expect(mails.map(({ subject }) => subject)).toEqual(["Reset your password", "Reset your password"]);
    for (const body of ["{", "[]", { email: "no address" }, {}])
      expect([body, (await ask("/request-password-reset", body)).status]).toEqual([body, 400]);
    await done();
    expect(mails).toHaveLength(2);
  });

  it("is no mail where the installation sends none, which is said", async () => {
    const { email, accountId } = await person({ email_verified: 0 });
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    const { ask, mails, done } = service(noMail);
    expect((await ask("/request-password-reset", { email })).status).toBe(400);
    const { cookie } = await session(accountId);
    expect((await ask("/change-email", { newEmail: "new@example.com" }, cookie)).status).toBe(400);
    // Nobody could confirm an address.
    expect((await ask("/sign-in/email", { email, password })).status).toBe(200);
    await done();
    expect(mails).toEqual([]);
  });
});

describe("a new account", () => {
  const signUp = (more: object = {}) => ({
    name: "Ada",
    email: `${uniqueName("fresh")}@example.com`,
    password,
    ...more,
  });
  const found = async (email: string) =>
    (await rows("SELECT id, role, plan, email_verified FROM accounts WHERE email = ?", email))[0];

  it("is its owner's once the mailed link is opened, by a password of 12 to 200 characters", async () => {
    const { ask, mails, done } = service();
    const asked = signUp({ role: "operator", plan: "pro", callbackURL: "https://evil.example" });
    expect((await ask("/sign-up/email", asked)).body).toEqual({ status: true });
    await done(1);
    const account = await found(asked.email);
    expect(account).toEqual({
      id: expect.stringMatching(/^acc_/),
      role: "user",
      plan: "free",
      email_verified: 0,
    });
    expect(
      await rows(
        "SELECT id, provider_id, provider_account_id, password FROM identities WHERE account_id = ?",
        String(account?.["id"]),
      ),
    ).toEqual([
      {
        id: expect.stringMatching(/^idn_/),
        provider_id: "credential",
        provider_account_id: account?.["id"],
        password: expect.stringMatching(/^scrypt\$16384\$16\$1\$/),
      },
    ]);
    expect(mails.map(({ to, subject }) => [to, subject])).toEqual([
      [[asked.email], "Confirm your email address"],
    ]);
    const link = /https?:\S+/.exec(mails[0]?.text ?? "")?.[0] ?? "";
    expect(new URL(link).searchParams.get("callbackURL")).toBe("/confirmed");
    const opened = await ask(link);
    expect([opened.status, opened.headers.get("Location")]).toEqual([302, "/confirmed"]);
    expect(await found(asked.email)).toMatchObject({ email_verified: 1 });
    // Its owner is told of a second one; its password stays.
    mails.length = 0;
    await ask("/sign-up/email", { ...asked, password: "another long password" });
    await done(1);
    expect(mails.map(({ to, subject }) => [to, subject])).toEqual([
      [[asked.email], "You already have an account"],
    ]);
    expect(mails[0]?.text).toContain(`${siteUrl}/sign-in\n`);
    expect(mails[0]?.text).toContain(`${siteUrl}/forgot-password`);
    for (const length of [11, 201]) {
      const other = signUp({ password: "x".repeat(length) });
      expect([length, (await ask("/sign-up/email", other)).status]).toEqual([length, 400]);
      await done();
      expect(await found(other.email)).toBeUndefined();
    }
    for (const length of [12, 200]) {
      const other = signUp({ password: "x".repeat(length) });
      expect([length, (await ask("/sign-up/email", other)).status]).toEqual([length, 200]);
      await done();
      expect(await found(other.email)).toBeDefined();
    }
  });

  it("is signed in at once where no mail can be sent", async () => {
    const { ask } = service(noMail);
    const asked = signUp();
    const answer = await ask("/sign-up/email", asked);
    expect([answer.status, answer.cookies]).toEqual([200, [expect.stringMatching(/^berth_session=/)]]);
    expect(answer.text).not.toContain('"token"');
  });

  it("is made by nobody where the installation takes none", async () => {
    for (const changes of [{ SIGN_UP: "closed" }, { SIGN_UP: "closed", ...noMail }]) {
      const { ask, done, mails } = service(changes);
      const asked = signUp();
      expect((await ask("/sign-up/email", asked)).status).toBe(400);
      await done();
      expect([await found(asked.email), mails]).toEqual([undefined, []]);
    }
  });
});

describe("a forgotten password", () => {
  it.each([
    ["?keepKeys=1", null],
    ["", "revoked"],
    ["?keepKeys=0", "revoked"],
  ])("is replaced by the mailed link (%s), which ends every session", async (query, keys) => {
    const { accountId, email } = await person({ email_verified: 0 });
    const { cookie } = await session(accountId);
    await write(
      insert("api_keys", {
        id: newId("key"),
        account_id: accountId,
        name: "Laptop",
        hash: accountId,
        start: "sk_1",
        origin: "page",
        created_at: 1,
      }),
    );
    const { ask, mails, done } = service();
    await ask("/request-password-reset", { email });
    await done(1);
    const token =
      new RegExp(`${siteUrl}/reset-password\\?token=(\\S+)`).exec(mails[0]?.text ?? "")?.[1] ?? "";
    expect(JSON.stringify(await rows("SELECT * FROM verifications"))).not.toContain(token);
    expect((await ask(`/reset-password${query}`, { token, newPassword: "a new long password" })).status).toBe(
      200,
    );
    await done();
    expect(await sessionsOf(accountId)).toEqual([]);
    const [row] = await rows<{ revoked_at: number | null }>(
      "SELECT revoked_at FROM api_keys WHERE account_id = ?",
      accountId,
    );
    expect(row?.revoked_at === null ? null : "revoked").toBe(keys);
    // The mailed link proves the address.
    expect(await rows("SELECT email_verified FROM accounts WHERE id = ?", accountId)).toEqual([
      { email_verified: 1 },
    ]);
    expect((await ask("/get-session", undefined, cookie)).text).toBe("null");
    expect(
      (await ask(`/reset-password${query}`, { token, newPassword: "a third long password" })).status,
    ).toBe(400);
  });
});

describe("GitHub's sign-in", () => {
  it("is there where it is set up, and leads back to this installation", async () => {
    const { ask } = service();
    const asked = await ask("/sign-in/social", { provider: "github", callbackURL: "/" });
    const to = new URL(String(asked.body["url"]));
    expect([
      asked.status,
      to.hostname,
      to.searchParams.get("client_id"),
      to.searchParams.get("redirect_uri"),
    ]).toEqual([200, "github.com", "github-id", `${siteUrl}/api/auth/callback/github`]);
    const without = service({ GITHUB_CLIENT_ID: undefined, GITHUB_CLIENT_SECRET: undefined });
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    expect((await without.ask("/sign-in/social", { provider: "github" })).status).toBe(404);
  });

  it("that fails leads to the page to sign in, which says so", async () => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    const { ask } = service();
    const back = await ask("/callback/github?code=c&state=forged");
    expect(back.status).toBe(302);
    expect(back.headers.get("Location")).toMatch(new RegExp(`^${siteUrl}/sign-in\\?.*error=`));
  });
});

it("codes by mail and the secret of the second step are not to be had", async () => {
  const { accountId } = await person();
  const { cookie } = await session(accountId);
  const { ask } = service();
  for (const path of ["/two-factor/send-otp", "/two-factor/verify-otp", "/two-factor/get-totp-uri"])
    expect([path, (await ask(path, { password, code: "1" }, cookie)).status]).toEqual([path, 404]);
});

it("a change of address is agreed to by the old one, then by the new one", async () => {
  const { accountId, email } = await person();
  const { cookie } = await session(accountId);
  const newEmail = `${uniqueName("new")}@example.com`;
  const { ask, mails, done } = service();
  expect((await ask("/change-email", { newEmail, callbackURL: "/account" }, cookie)).status).toBe(200);
  await done(1);
  expect(mails.map(({ to, subject }) => [to, subject])).toEqual([[[email], "Change your email address?"]]);
  expect(mails[0]?.text).toContain(newEmail);
  expect(mails[0]?.text).toContain("your Berth account");
  await ask(/https?:\S+/.exec(mails[0]?.text ?? "")?.[0] ?? "", undefined, cookie);
  await done(2);
  expect(mails[1]?.to).toEqual([newEmail]);
  expect(await rows("SELECT email FROM accounts WHERE id = ?", accountId)).toEqual([{ email }]);
  await ask(/https?:\S+/.exec(mails[1]?.text ?? "")?.[0] ?? "", undefined, cookie);
  expect(await rows("SELECT email FROM accounts WHERE id = ?", accountId)).toEqual([{ email: newEmail }]);
});
