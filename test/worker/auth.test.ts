import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { base32 } from "@better-auth/utils/base32";
import { createOTP } from "@better-auth/utils/otp";
import { app } from "../../worker/app.ts";
import { hashPassword } from "../../worker/adapters/password.ts";
import { contextOf } from "../../worker/compose.ts";
import { sha256Hex } from "../../worker/domain/tokens.ts";
import type { Env } from "../../worker/env.ts";
import { accountRow, insert, newId, write, type Row } from "./billing-rows.ts";
import { crashingDatabase } from "./crashing-database.ts";
import { notedLimits } from "./direct.ts";
import { bindings, newSession, siteUrl, uniqueName } from "./service.ts";
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
/** By the address that mails are handed to: what one service sends late is not another's. */
const sentTo = new Map<string, Mail[]>();
/** The Worker with other bindings; its limits are not counted, but noted. */
function service(
  changes: Record<string, string | undefined | D1Database> = {},
  waitSeconds: Record<string, number> = {},
  answers: Record<string, unknown> = {},
) {
  const { noted: counted, limits } = notedLimits(waitSeconds);
  const mails: Mail[] = [];
  /** Other requests: GitHub's answers by path. */
  const asked: { path: string; body: string }[] = [];
  const deferred: Promise<unknown>[] = [];
  const endpoint = `https://mail.test/${sentTo.size}`;
  sentTo.set(endpoint, mails);
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    const mailbox = sentTo.get(request.url);
    const path = new URL(request.url).pathname;
    if (mailbox) mailbox.push(await request.json());
    else asked.push({ path, body: await request.text() });
    return Response.json(answers[path] ?? {});
  });
  const env = {
    ...bindings,
    MAIL_ENDPOINT: endpoint,
    ...changes,
    ...limits,
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
    asked,
    /** What is done after the answer, and so many mails by then. */
    done: async (count = mails.length) => {
      while (deferred.length > 0) await deferred.shift();
      await vi.waitFor(() => expect(mails.map(({ subject }) => subject)).toHaveLength(count), 10_000);
    },
    ask: async (
      path: string,
      body?: object | string | Uint8Array,
      headers: Record<string, string | null> = {},
      { laterMs = 10_000 } = {},
    ) => {
      pushedMs += laterMs;
      const response = await app.fetch(
        new Request(path.startsWith("http") ? path : `${origin}/api/auth${path}`, {
          method: body === undefined ? "GET" : "POST",
          headers: Object.entries({
            ...(body !== undefined && { "Content-Type": "application/json", Origin: origin }),
            "CF-Connecting-IP": "192.0.2.7",
            ...headers,
          }).filter((header): header is [string, string] => header[1] !== null),
          ...(body !== undefined && {
            body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body),
          }),
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

const linesOf = (log: { mock: { calls: unknown[][] } }): unknown[] =>
  log.mock.calls
    .map(([line]) => String(line))
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as unknown);

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
async function session(accountId: string, more: Record<string, number> = {}) {
  const now = Date.now();
  const made = await newSession(accountId, { created_at: now, updated_at: now, ...more });
  return { ...made, cookie: { Cookie: made.cookie } };
}
const cookieOf = ({ cookies }: { cookies: string[] }) => ({
  Cookie: cookies.map((one) => one.split(";")[0]).join("; "),
});
const secondSecret = "a secret of an app, long enough";
const recoveryCodes = ["aaaaa-bbbbb", "ccccc-ddddd"];
/** The code that the app shows at this moment. */
const appCode = () => createOTP(secondSecret, { period: 30 }).hotp(Math.floor(Date.now() / 30_000));
/** Whoever signs in with a second step. */
async function cautious() {
  const someone = await person({ two_factor_enabled: 1 });
  const id = uniqueName("two-factor");
  const { secrets } = contextOf(bindings, { type: "system" }, () => undefined);
  await write(
    insert("two_factors", {
      id,
      account_id: someone.accountId,
      secret_sealed: secrets.seal(secondSecret, `two_factors.secret:${id}`),
      backup_codes_sealed: secrets.seal(JSON.stringify(recoveryCodes), `two_factors.backup_codes:${id}`),
      verified: 1,
    }),
  );
  return someone;
}
/** The token of a mailed link that confirms an address. */
const tokenIn = (mail: Mail | undefined) =>
  /https?:\S+\/confirm-address\?token=(\S+)/.exec(mail?.text ?? "")?.[1] ?? "";
const form = { "Content-Type": "application/x-www-form-urlencoded" };
/** Presses the button of the page that such a link leads to. */
const confirm = ({ ask }: Pick<ReturnType<typeof service>, "ask">, token: string, cookie = {}) =>
  ask(`${siteUrl}/confirm-address`, `token=${encodeURIComponent(token)}`, { ...form, ...cookie });
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

  it("begun on the page notes the browser, if there is one", async () => {
    const { accountId, email } = await person();
    const { ask } = service();
    const form = new URLSearchParams({ email, password }).toString();
    const type = { "Content-Type": "application/x-www-form-urlencoded" };
    for (const browser of ["Firefox", null])
      await ask(`${siteUrl}/sign-in`, form, { ...type, "User-Agent": browser });
    expect(
      await rows(
        "SELECT user_agent, ip_address FROM sessions WHERE account_id = ? ORDER BY created_at",
        accountId,
      ),
    ).toEqual([
      { user_agent: "Firefox", ip_address: "192.0.2.7" },
      { user_agent: expect.not.stringContaining("undefined"), ip_address: "192.0.2.7" },
    ]);
  });

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
    expect((await ask("/sign-out", "", { ...second.cookie, "Content-Type": null })).status).toBe(200);
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
      // Mails are sent after the answer.
      return counted.filter((name) => !/^(address|mailedTo):/.test(name));
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

describe("a change of how an account is signed in to", () => {
  it("is in its activity, and mailed to its owner with the time and the place", async () => {
    const { accountId, email } = await person();
    const asking = service();
    const signedIn = async () => (await session(accountId)).cookie;
    const noted = async () => ({
      activity: (
        await rows("SELECT operation FROM activity WHERE account_id = ? ORDER BY id", accountId)
      ).map((one) => one["operation"]),
      mails: await rows<{ text: string }>(
        "SELECT text FROM mails WHERE account_id = ? ORDER BY created_at",
        accountId,
      ),
    });
    const wrong = { currentPassword: "wrong password", newPassword: "a new long password" };
    await asking.ask("/change-password", wrong, await signedIn());
    expect(await noted()).toEqual({ activity: [], mails: [] });
    const body = { currentPassword: password, newPassword: password };
    expect((await asking.ask("/change-password", body, await signedIn())).status).toBe(200);
    const cookie = await signedIn();
    const { totpURI } = (await asking.ask("/two-factor/enable", { password }, cookie)).body;
    const secret = new URL(String(totpURI)).searchParams.get("secret") ?? "";
    const code = async () => {
      pushedMs += 60_000;
      const plain = new TextDecoder().decode(base32.decode(secret));
      return createOTP(plain, { period: 30 }).hotp(Math.floor(Date.now() / 30_000));
    };
    const on = await asking.ask("/two-factor/verify-totp", { code: await code() }, cookie, { laterMs: 0 });
    expect(on.status).toBe(200);
    for (const path of ["/two-factor/generate-backup-codes", "/two-factor/disable"]) {
      const sent = { password, code: await code() };
      const changed = await asking.ask(path, sent, await signedIn(), { laterMs: 0 });
      expect([path, changed.status]).toEqual([path, 200]);
    }
    await asking.ask("/request-password-reset", { email });
    await asking.done(1);
    const token = /token=(\S+)/.exec(asking.mails[0]?.text ?? "")?.[1] ?? "";
    expect((await asking.ask("/reset-password", { token, newPassword: password })).status).toBe(200);
    await asking.done();
    const { activity, mails } = await noted();
    expect(activity).toEqual([
      "changePassword",
      "turnOnTwoFactor",
      "renewRecoveryCodes",
      "turnOffTwoFactor",
      "resetPassword",
    ]);
    expect(mails).toHaveLength(5);
    for (const { text } of mails)
      expect(text).toMatch(/ at 20\d\d-\S+ \d\d:\d\d UTC, from the address 192\.0\.2\.7\.\n/);
  });
});

describe("a new password", () => {
  beforeEach(() => void vi.spyOn(console, "error").mockImplementation(() => undefined));

  it.each(["/change-password", "/reset-password"])(
    "by %s is recorded and mailed, and ends sessions, links and, by a reset, keys, wherever the request is cut short",
    async (path) => {
      const newPassword = "a new long password";
      let kept = 0;
      let changed = 0;
      for (let roundTrip = 0; changed < 3 && roundTrip < 20; roundTrip++) {
        const { accountId, email } = await person();
        const old = await session(accountId);
        const key = { name: "k", hash: uniqueName("hash"), start: "k", origin: "manual", created_at: 1 };
        await write(insert("api_keys", { id: newId("key"), account_id: accountId, ...key }));
        const asking = service();
        await asking.ask("/request-password-reset", { email });
        await asking.ask("/request-password-reset", { email });
        await asking.done(2);
        const token = /token=(\S+)/.exec(asking.mails[0]?.text ?? "")?.[1] ?? "";
        const [before] = await rows("SELECT password FROM identities WHERE account_id = ?", accountId);
        const { ask } = service({ DB: crashingDatabase(bindings.DB, { roundTrip, when: "after" }) });
        const body =
          path === "/change-password" ? { currentPassword: password, newPassword } : { token, newPassword };
        await ask(path, body, old.cookie).catch(() => undefined);
        const [after] = await rows("SELECT password FROM identities WHERE account_id = ?", accountId);
        const isNew = after?.["password"] !== before?.["password"];
        const [found] = await rows(
          `SELECT (SELECT count(*) FROM activity WHERE account_id = ?1) AS activity,
            (SELECT count(*) FROM mails WHERE account_id = ?1) AS mails,
            (SELECT count(*) FROM sessions WHERE account_id = ?1 AND id = ?2) AS sessions,
            (SELECT count(*) FROM api_keys WHERE account_id = ?1 AND revoked_at IS NOT NULL) AS revoked,
            (SELECT count(*) > 0 FROM verifications WHERE value = ?1) AS links`,
          accountId,
          old.id,
        );
        if (isNew) changed++;
        else kept++;
        const [is, was] = [Number(isNew), Number(!isNew)];
        const revoked = path === "/reset-password" ? is : 0;
        const wanted = { activity: is, mails: is, sessions: was, revoked, links: was };
        expect([roundTrip, isNew, found]).toEqual([roundTrip, isNew, wanted]);
      }
      expect([kept > 0, changed]).toEqual([true, 3]);
    },
    120_000,
  );
});

describe("mails to an address", () => {
  it("are counted by subject for whoever is to get them, whatever causes them, and changes of address by account too", async () => {
    const { accountId, email } = await person();
    const unconfirmed = { email: (await person({ email_verified: 0 })).email, password };
    const { cookie } = await session(accountId);
    const fresh = `${uniqueName("fresh")}@example.com`;
    const newEmail = `${uniqueName("new")}@example.com`;
    const causes: [string, object, string, object?][] = [
      ["/sign-up/email", { name: "Ada", email: fresh, password }, `You already have an account ${fresh}`],
      ["/sign-up/email", { name: "Ada", email, password }, `You already have an account ${email}`],
      ["/sign-in/email", unconfirmed, `Confirm your email address ${unconfirmed.email}`],
      ["/send-verification-email", unconfirmed, `Confirm your email address ${unconfirmed.email}`],
      ["/request-password-reset", { email: email.toUpperCase() }, `Reset your password ${email}`],
      ["/change-email", { newEmail }, `Change your email address? ${email}`, cookie],
    ];
    for (const [path, body, mailed, headers = {}] of causes) {
      const full = service({}, { mailedTo: 9 });
      const refused = await full.ask(path, body, { ...headers });
      await full.done();
      expect([path, full.mails]).toEqual([path, []]);
      const asking = service();
      const answer = await asking.ask(path, body, { ...headers });
      await asking.done(1);
      expect([path, answer.status, answer.body]).toEqual([path, refused.status, refused.body]);
      const counted = asking.counted.filter((name) => name.startsWith("mailedTo:"));
      expect([path, counted]).toEqual([path, [`mailedTo:${mailed}`]]);
      if (path !== "/change-email") continue;
      expect(asking.counted).toContain(`mailed:${accountId}`);
      await confirm(asking, tokenIn(asking.mails[0]), cookie);
      await asking.done(2);
      expect(asking.counted).toContain(`mailedTo:Confirm your email address ${newEmail}`);
    }
  });
});

describe("the queue of passwords", () => {
  let addresses = 0;
  /** Whether this is looked at although strangers wait for five seconds already. */
  async function isAdmitted(
    { ask }: ReturnType<typeof service>,
    path: string,
    body: object,
    headers: Record<string, string> = {},
  ) {
    pushedMs += 10 * 60_000;
    const once = async (more: Record<string, string>, asked = path) => {
      const from = `2001:db8:${(++addresses).toString(16)}::1`;
      const own = { "CF-Connecting-IP": from, ...more };
      const answer = await ask(asked, body, own, { laterMs: 0 });
      if (answer.status === 429) expect(answer.headers.get("Retry-After")).toBe("5");
      return answer.status !== 429;
    };
    let strangers = 0;
    while (strangers < 50 && (await once({}, "/reset-password"))) strangers++;
    expect([strangers > 20, strangers < 50]).toEqual([true, true]);
    return once(headers);
  }

  it("is longer for whoever is signed in, and for a device from which somebody has signed in", async () => {
    const { accountId, email } = await person();
    const other = await person();
    const { cookie } = await session(accountId);
    const asking = service();
    const { cookies } = await asking.ask("/sign-in/email", { email, password });
    const device = cookieOf({ cookies: cookies.filter((one) => one.startsWith("berth_device")) });
    const forged = { Cookie: `${cookie.Cookie.slice(0, -8)}AAAAAA%3D` };
    for (const [path, body, headers, isLonger] of [
      ["/sign-in/email", { email }, {}, false],
      ["/sign-in/email", { email }, device, true],
      ["/sign-in/email", { email: other.email }, device, false],
      ["/sign-in/email", { email }, cookie, false],
      ["/change-password", {}, cookie, true],
      ["/change-password", {}, forged, false],
      ["/change-password", {}, device, false],
      ["/reset-password", {}, cookie, false],
    ] as const)
      expect([path, body, headers, await isAdmitted(asking, path, body, headers)]).toEqual([
        path,
        body,
        headers,
        isLonger,
      ]);
  });

  it("has ever fewer places for one address", async () => {
    const { ask } = service();
    pushedMs += 10 * 60_000;
    const statuses: number[] = [];
    for (let count = 0; count < 12; count++)
      statuses.push((await ask("/sign-in/email", { email: 7 }, {}, { laterMs: 0 })).status);
    expect(statuses.filter((status) => status !== 429)).toEqual(Array.from({ length: 7 }, () => 400));
  });
});

describe("with a second step", () => {
  it("a password alone begins no session; the code does, once", async () => {
    const { accountId, email } = await cautious();
    const { ask, counted } = service();
    const [one, other] = [
      await ask("/sign-in/email", { email, password }),
      await ask("/sign-in/email", { email, password }),
    ];
    expect([one.status, one.body["twoFactorRedirect"], one.cookies.join()]).toEqual([
      200,
      true,
      expect.not.stringMatching(/berth_session=[^;]/),
    ]);
    const about = cookieOf(one);
    const wrong = await ask("/two-factor/verify-totp", { code: "000000" }, about);
    expect([wrong.status, wrong.body["error"]]).toEqual([401, "unauthorized"]);
    expect(await sessionsOf(accountId)).toEqual([]);
    counted.length = 0;
    const code = await appCode();
    const right = await ask("/two-factor/verify-totp", { code }, about, { laterMs: 0 });
    expect([right.status, right.cookies.join(), right.body["token"]]).toEqual([
      200,
      expect.stringMatching(/berth_session=[^;]+%3D;/),
      undefined,
    ]);
    // What the step before proved is known from then on; this one proves nothing of the kind.
    expect([one.cookies.join().match(/_device=/g), right.cookies.join().match(/_device=/g)]).toEqual([
      ["_device="],
      null,
    ]);
    expect(counted.filter((name) => !name.startsWith("address:"))).toEqual([
      "secondStep:192.0.2.7",
      "not secondStep:192.0.2.7",
    ]);
    const used = await ask("/two-factor/verify-totp", { code }, cookieOf(other), { laterMs: 0 });
    expect([used.status, used.body, used.cookies]).toEqual([
      401,
      { error: "unauthorized", message: "Invalid code", code: "INVALID_CODE" },
      [],
    ]);
    expect(await sessionsOf(accountId)).toHaveLength(1);
    pushedMs += 60_000;
    const again = cookieOf(await ask("/sign-in/email", { email, password }));
    const next = await appCode();
    const later = await ask("/two-factor/verify-totp", { code: next }, again, { laterMs: 0 });
    expect([next === code, later.status]).toEqual([false, 200]);
  });

  it("a recovery code begins a session, once", async () => {
    const { accountId, email } = await cautious();
    const { ask } = service();
    for (const [code, status] of [
      ["ccccc-ddddd", 200],
      ["ccccc-ddddd", 401],
      ["eeeee-fffff", 401],
      ["aaaaa-bbbbb", 200],
    ] as const) {
      const about = cookieOf(await ask("/sign-in/email", { email, password }));
      expect([code, (await ask("/two-factor/verify-backup-code", { code }, about)).status]).toEqual([
        code,
        status,
      ]);
    }
    expect(await sessionsOf(accountId)).toHaveLength(2);
  });

  it("another address takes a code, another password none", async () => {
    const { accountId, email } = await cautious();
    const { cookie } = await session(accountId);
    const { ask, mails, done } = service();
    const newEmail = `${uniqueName("new")}@example.com`;
    for (const code of [undefined, "", "000000", 7])
      expect([code, (await ask("/change-email", { newEmail, code }, cookie)).status]).toEqual([code, 400]);
    await done();
    expect(mails).toEqual([]);
    const changed = await ask("/change-email", { newEmail, code: await appCode() }, cookie, { laterMs: 0 });
    expect([changed.status, changed.cookies.join().match(/_device=/)]).toEqual([200, null]);
    await done(1);
    expect(mails[0]?.to).toEqual([email]);
    const newPassword = { currentPassword: password, newPassword: "a new long password" };
    expect((await ask("/change-password", newPassword, cookie)).status).toBe(200);
    // Whoever is not signed in is told so.
    expect((await ask("/change-email", { newEmail })).status).toBe(401);
  });

  it("another way to sign in is linked and unlinked with a code only", async () => {
    const { accountId } = await cautious();
    const { cookie } = await session(accountId);
    const { ask } = service();
    const github = { provider: "github", callbackURL: "/" };
    expect((await ask("/link-social", github, cookie)).status).toBe(400);
    expect((await ask("/unlink-account", { providerId: "credential" }, cookie)).status).toBe(400);
    const linking = await ask("/link-social", { ...github, code: await appCode() }, cookie, { laterMs: 0 });
    expect([linking.status, linking.body["url"]]).toEqual([200, expect.stringContaining("github.com")]);
  });

  it("a cookie that is written so that only one of two readers finds a session in it is none", async () => {
    const { accountId } = await cautious();
    const { cookie } = await session(accountId);
    const other = await session((await person()).accountId);
    const { ask } = service();
    const [name, value] = cookie.Cookie.split(/=(.*)/);
    const odd = [
      `${name}="${value}x`,
      `${name}="${value}"`,
      `${name}="${value}x; ${other.cookie.Cookie}`,
      `${other.cookie.Cookie}; ${cookie.Cookie}`,
    ];
    // The other's own account may have changed.
    for (const Cookie of odd) await ask("/two-factor/disable", { password, code: "" }, { Cookie });
    expect(await rows("SELECT two_factor_enabled FROM accounts WHERE id = ?", accountId)).toEqual([
      { two_factor_enabled: 1 },
    ]);
  });

  it("no browser is trusted to need none, though better-auth would remember it", async () => {
    const { email } = await cautious();
    const { ask } = service();
    const about = cookieOf(await ask("/sign-in/email", { email, password }));
    const right = await ask("/two-factor/verify-totp", { code: await appCode(), trustDevice: true }, about, {
      laterMs: 0,
    });
    expect(right.status).toBe(200);
    const again = await ask("/sign-in/email", { email, password }, cookieOf(right));
    expect(again.body["twoFactorRedirect"]).toBe(true);
  });

  it("a password is checked by no request that does nothing else", async () => {
    const { accountId } = await person();
    const { cookie } = await session(accountId);
    const { ask } = service();
    for (const typed of [password, "wrong"])
      expect((await ask("/verify-password", { password: typed }, cookie)).status).toBe(404);
  });

  it("an app is set up with the installation's name", async () => {
    const { accountId } = await person();
    const { cookie } = await session(accountId);
    const { ask } = service();
    const { totpURI, backupCodes } = (await ask("/two-factor/enable", { password }, cookie)).body;
    expect(String(totpURI)).toMatch(/^otpauth:\/\/totp\/Berth:.*issuer=Berth/);
    expect(backupCodes).toHaveLength(10);
    const kept = JSON.stringify(await rows("SELECT * FROM two_factors WHERE account_id = ?", accountId));
    expect(kept).toContain(accountId);
    expect(kept).not.toContain((backupCodes as string[])[0]);
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
    const field = await ask("/two-factor/verify-totp", { code: 1 }, cookie);
    expect(field.body).toMatchObject({
      message: "code: must be a string",
      issues: [{ path: "code", message: "must be a string" }],
    });
    expect([short.body["reason"], wrong.body["issues"], taken.body["issues"]]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    const none = await ask("/no-such-thing", {});
    expect([none.status, none.body, none.headers.get("Content-Type")]).toEqual([
      404,
      { error: "Not found" },
      "application/json",
    ]);
    const unread = await ask("/sign-in/email", { email: 7, password });
    expect([unread.status, unread.body["error"]]).toEqual([400, "invalid_request"]);
    const text = await ask("/sign-in/email", "email", { "Content-Type": "text/plain" });
    expect([text.status, text.body["error"]]).toEqual([415, "unsupported_media_type"]);
    const broken = new Uint8Array([0x22, 0xff, 0x22]);
    const other = await ask("/sign-in/email", broken);
    expect([other.status, other.body["issues"]]).toEqual([
      400,
      [{ path: "", message: "The body is not valid UTF-8" }],
    ]);
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
    const failed = await ask(
      "/change-password",
      { currentPassword: password, newPassword: "a new long password" },
      cookie,
    );
    expect([failed.status, failed.body["error"]]).toEqual([500, "server_error"]);
    expect(JSON.stringify(log.mock.calls)).toContain("better-auth answered 500");
    await done();
  });

  it("by mail only, which fails after it was given, is in the log with its reason", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const { email } = await person();
    let isAway = false;
    const DB = new Proxy(bindings.DB, {
      get: (db, name: keyof D1Database) =>
        name === "prepare"
          ? (query: string) => {
              if (isAway && /accounts/.test(query)) throw new Error("disk full");
              return db.prepare(query);
            }
          : db[name],
    });
    const { ask, done } = service({ DB });
    await ask("/get-session");
    isAway = true;
    expect((await ask("/request-password-reset", { email })).body).toEqual({ status: true });
    await done();
    expect(linesOf(log)).toContainEqual(
      expect.objectContaining({
        level: "error",
        auth: "/request-password-reset",
        error: expect.stringContaining("better-auth answered 500"),
      }),
    );
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
    const log = vi.spyOn(console, "error").mockClear();
    for (const headers of [{ Origin: null }, { Origin: siteUrl }]) {
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
    expect(log).not.toHaveBeenCalled();
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
    (await rows("SELECT id, role, plan, image, email_verified FROM accounts WHERE email = ?", email))[0];

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
      image: null,
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
    const confirmed = await confirm({ ask }, tokenIn(mails[0]));
    expect([confirmed.status, confirmed.headers.get("Location")]).toEqual([303, "/confirmed"]);
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
      await done(mails.length + 1);
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

  it("has no rights that its owner asks for, nor anything that a new account does not have", async () => {
    const { ask } = service(noMail);
    const asked = signUp({ role: "operator", plan: "pro", image: "x".repeat(1000) });
    expect((await ask("/sign-up/email", asked)).status).toBe(200);
    expect(await found(asked.email)).toMatchObject({ role: "user", plan: "free", image: null });
  });

  it.each([
    ["with mail", {}],
    ["without mail", noMail],
  ])("has a name and an address within the documented bounds (%s)", async (_, changes) => {
    const { ask, done, mails } = service(changes);
    const long = `${"x".repeat(50)}@${"a".repeat(60)}.${"b".repeat(60)}.${"c".repeat(60)}.${"d".repeat(25)}.com`;
    for (const [field, value] of [
      ["name", ""],
      ["name", "x".repeat(101)],
      ["name", "A\0da"],
      ["password", "correct horse battery \ud800"],
      ["email", long],
    ] as const) {
      const asked = signUp({ [field]: value });
      const answer = await ask("/sign-up/email", asked);
      expect([field, answer.status, answer.body["issues"]]).toEqual([
        field,
        400,
        [expect.objectContaining({ path: field })],
      ]);
      await done();
      expect([await found(asked.email), mails]).toEqual([undefined, []]);
    }
    expect((await ask("/sign-up/email", signUp({ name: "x".repeat(100) }))).status).toBe(200);
    await done();
  });

  it("is asked for in JSON or on the page, in no other form that a name could hide in", async () => {
    const { ask } = service(noMail);
    const asked = signUp();
    const form = (more: object) => new URLSearchParams({ ...asked, ...more }).toString();
    const type = { "Content-Type": "application/x-www-form-urlencoded" };
    expect((await ask("/sign-up/email", form({}), type)).status).toBe(415);
    expect((await ask(`${siteUrl}/sign-up`, form({ name: "A\0da" }), type)).status).toBe(400);
    const short = await ask(`${siteUrl}/sign-up`, form({ password: "short" }), type);
    expect([short.status, short.text]).toEqual([
      400,
      expect.stringContaining("The password must have at least 12 characters."),
    ]);
    const unaddressed = await ask(`${siteUrl}/sign-up`, form({ email: "nobody" }), type);
    expect([unaddressed.status, unaddressed.text]).toEqual([
      400,
      expect.stringContaining("Email: must be an email address."),
    ]);
    // What better-auth would not take for the same path is not taken here either.
    const wrong = JSON.stringify({ ...asked, name: "A\0da" });
    for (const path of ["/sign-up/email/", "/sign-up//email", "/sign-up/e%6dail", "/sign-up/EMAIL"])
      expect((await ask(path, wrong)).status).toBeGreaterThanOrEqual(400);
    for (const path of ["/sign-up/email", "/sign-out"])
      expect([path, (await ask(path)).status]).toEqual([path, 404]);
    expect(await found(asked.email)).toBeUndefined();
  });

  it("is made by nobody where the installation takes none", async () => {
    for (const changes of [{ SIGN_UP: "closed" }, { SIGN_UP: "closed", ...noMail }]) {
      const { ask, done, mails } = service(changes);
      const asked = signUp();
      expect((await ask("/sign-up/email", asked)).status).toBe(400);
      // Nor does anybody learn whether an address has an account.
      const { email } = await person();
      const known = await ask("/sign-up/email", signUp({ email }));
      const unknown = await ask("/sign-up/email", signUp());
      expect([known.status, known.body]).toEqual([400, unknown.body]);
      await done();
      expect([await found(asked.email), mails]).toEqual([undefined, []]);
    }
    // Who has one still gets mail.
    const { email } = await person();
    const { ask, done, mails } = service({ SIGN_UP: "closed" });
    expect((await ask("/request-password-reset", { email })).body).toEqual({ status: true });
    await done(1);
    expect(mails[0]?.subject).toBe("Reset your password");
  });
});

describe("a forgotten password", () => {
  it.each([
    ["?keepKeys=1", null],
    ["", "revoked"],
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
    for (const half of [{ GITHUB_CLIENT_ID: undefined }, { GITHUB_CLIENT_SECRET: undefined }])
      expect((await service(half).ask("/sign-in/social", { provider: "github" })).status).toBe(404);
  });

  let people = 0;
  /** Somebody whom GitHub knows by this address comes back from there. */
  async function cameBack(email: string, changes: Parameters<typeof service>[0] = {}, id = ++people) {
    const answers = {
      "/login/oauth/access_token": { access_token: "gho_shown", token_type: "bearer", scope: "user:email" },
      "/user/emails": [{ email, primary: true, verified: true }],
      "/user": { id, login: "ada", name: "Ada", email, avatar_url: "" },
    };
    const asking = service(changes, {}, answers);
    const begun = await asking.ask("/sign-in/social", { provider: "github", callbackURL: "/" });
    const state = new URL(String(begun.body["url"])).searchParams.get("state") ?? "";
    const path = `/callback/github?code=1&state=${encodeURIComponent(state)}`;
    return { ...asking, id, back: await asking.ask(path, undefined, cookieOf(begun)) };
  }
  const accountOf = async (email: string) =>
    (await rows("SELECT id FROM accounts WHERE email = ?", email))[0]?.["id"];

  it("makes an account or finds it, and keeps GitHub's token so that nobody can read it", async () => {
    const email = `${uniqueName("octocat")}@example.com`;
    const { back, asked, id } = await cameBack(email);
    expect([back.status, back.headers.get("Location"), back.cookies.join()]).toEqual([
      302,
      "/",
      expect.stringMatching(/berth_session=[^;]+%3D;/),
    ]);
    expect(asked.find(({ path }) => path === "/login/oauth/access_token")?.body).toMatch(
      /client_secret=github-secret/,
    );
    const accountId = await accountOf(email);
    expect(
      await rows("SELECT account_id, access_token FROM identities WHERE provider_account_id = ?", String(id)),
    ).toEqual([{ account_id: accountId, access_token: expect.not.stringContaining("gho_shown") }]);
    const again = await cameBack(email, {}, id);
    expect([again.back.headers.get("Location"), await sessionsOf(String(accountId))]).toEqual([
      "/",
      [expect.anything(), expect.anything()],
    ]);
  });

  it("makes none where the installation takes none", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const email = `${uniqueName("octocat")}@example.com`;
    const { back } = await cameBack(email, { SIGN_UP: "closed" });
    expect(back.headers.get("Location")).toMatch(new RegExp(`^${siteUrl}/sign-in\\?.*error=`));
    expect(await accountOf(email)).toBeUndefined();
    expect(linesOf(log)).toContainEqual({ level: "error", auth: "unable_to_create_user" });
  });

  it("is followed by the second step", async () => {
    const { accountId, email } = await cautious();
    const id = ++people;
    await write(
      insert("identities", {
        id: uniqueName("identity"),
        account_id: accountId,
        provider_id: "github",
        provider_account_id: String(id),
        created_at: 1,
        updated_at: 1,
      }),
    );
    const { back, ask } = await cameBack(email, {}, id);
    expect([back.status, back.headers.get("Location"), back.cookies.join()]).toEqual([
      303,
      "/sign-in/second-step",
      expect.not.stringMatching(/berth_session=[^;]/),
    ]);
    expect(await sessionsOf(accountId)).toEqual([]);
    const on = await ask("/two-factor/verify-totp", { code: await appCode() }, cookieOf(back), {
      laterMs: 0,
    });
    expect([on.status, (await sessionsOf(accountId)).length]).toEqual([200, 1]);
  });

  it("that fails leads to the page to sign in, which says so", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const { ask } = service();
    const back = await ask("/callback/github?code=c&state=forged");
    expect(back.status).toBe(302);
    expect(back.headers.get("Location")).toMatch(new RegExp(`^${siteUrl}/sign-in\\?.*error=`));
    expect(linesOf(log)).toContainEqual(
      expect.objectContaining({ auth: "Failed to parse state", error: expect.stringContaining("mismatch") }),
    );
  });
});

it("codes by mail and the secret of the second step are not to be had", async () => {
  const { accountId } = await person();
  const { cookie } = await session(accountId);
  const { ask } = service();
  for (const path of ["/two-factor/send-otp", "/two-factor/verify-otp", "/two-factor/get-totp-uri"])
    expect([path, (await ask(path, { password, code: "1" }, cookie)).status]).toEqual([path, 404]);
});

it("a name is changed by our own API alone, which bounds it and records the change", async () => {
  const { accountId } = await person({ name: "Ada" });
  const { cookie } = await session(accountId);
  const { ask } = service();
  for (const changes of [{ name: "Grace" }, { image: "x".repeat(1000) }, { role: "operator" }])
    expect((await ask("/update-user", changes, cookie)).status).toBe(404);
  expect(await rows("SELECT name, image, role FROM accounts WHERE id = ?", accountId)).toEqual([
    { name: "Ada", image: null, role: "user" },
  ]);
});

it("an address that is too long for an account is none to change to", async () => {
  const { accountId } = await person();
  const { cookie } = await session(accountId);
  const { ask, mails, done } = service();
  const newEmail = `${"x".repeat(50)}@${"a".repeat(60)}.${"b".repeat(60)}.${"c".repeat(60)}.${"d".repeat(25)}.com`;
  const refused = await ask("/change-email", { newEmail }, cookie);
  expect([refused.status, refused.body["issues"]]).toEqual([
    400,
    [expect.objectContaining({ path: "newEmail" })],
  ]);
  await done();
  expect(mails).toEqual([]);
});

describe("a mailed link that confirms an address", () => {
  const emailOf = async (accountId: string) =>
    (await rows("SELECT email, email_verified FROM accounts WHERE id = ?", accountId))[0];

  it("does nothing when it is opened: its form does, once, from our own page, and signs in nobody", async () => {
    const { accountId, email } = await person({ email_verified: 0 });
    const asking = service();
    await asking.ask("/send-verification-email", { email });
    await asking.done(1);
    const token = tokenIn(asking.mails[0]);
    const opened = await asking.ask(`${siteUrl}/confirm-address?token=${token}`);
    expect([opened.status, opened.text]).toEqual([200, expect.stringContaining(email)]);
    const ofBefore = await asking.ask(`/verify-email?token=${token}`);
    expect([ofBefore.status, ofBefore.headers.get("Location")]).toEqual([
      303,
      `/confirm-address?token=${token}`,
    ]);
    const foreign = { Origin: "https://evil.example" };
    expect((await confirm(asking, token, foreign)).status).toBe(403);
    expect((await confirm(asking, `${token}x`)).status).toBe(400);
    expect(await emailOf(accountId)).toMatchObject({ email_verified: 0 });
    const confirmed = await confirm(asking, token);
    expect([confirmed.status, confirmed.headers.get("Location")]).toEqual([303, "/confirmed"]);
    expect([confirmed.cookies, await sessionsOf(accountId)]).toEqual([[], []]);
    expect(await emailOf(accountId)).toMatchObject({ email_verified: 1 });
    const again = await confirm(asking, token);
    expect([again.status, again.text]).toEqual([400, expect.stringContaining("The link has ended")]);
  });

  it("is valid for an hour", async () => {
    const { accountId, email } = await person({ email_verified: 0 });
    const asking = service();
    await asking.ask("/send-verification-email", { email });
    await asking.done(1);
    pushedMs += 60 * 60_000;
    expect((await confirm(asking, tokenIn(asking.mails[0]))).status).toBe(400);
    expect(await emailOf(accountId)).toMatchObject({ email_verified: 0 });
  });

  it("changes an address by the account's own session only, and begins none, with a second step either", async () => {
    const { accountId, email } = await cautious();
    const { id, cookie } = await session(accountId);
    const other = await session((await person()).accountId);
    const asking = service();
    const newEmail = `${uniqueName("new")}@example.com`;
    await asking.ask("/change-email", { newEmail, code: await appCode() }, cookie, { laterMs: 0 });
    await asking.done(1);
    for (const step of [0, 1]) {
      const token = tokenIn(asking.mails[step]);
      const page = `/confirm-address?token=${token}`;
      const nobody = await asking.ask(siteUrl + page);
      expect(nobody.headers.get("Location")).toBe(`/sign-in?next=${encodeURIComponent(page)}`);
      expect((await asking.ask(siteUrl + page, undefined, other.cookie)).status).toBe(403);
      expect((await confirm(asking, token)).headers.get("Location")).toBe("/sign-in");
      expect((await confirm(asking, token, other.cookie)).status).toBe(403);
      expect(await emailOf(accountId)).toMatchObject({ email });
      await asking.done(step + 1);
      const confirmed = await confirm(asking, token, cookie);
      expect([confirmed.headers.get("Location"), confirmed.cookies.join()]).toEqual([
        "/account",
        expect.not.stringContaining("session"),
      ]);
      await asking.done(2);
      // Each agreement mails once.
      expect((await confirm(asking, token, cookie)).status).toBe(400);
    }
    await asking.done(2);
    expect(await emailOf(accountId)).toEqual({ email: newEmail, email_verified: 1 });
    expect((await sessionsOf(accountId)).map((one) => one.id)).toEqual([id]);
  });

  it("says that another account has the address by now, and changes none", async () => {
    const { accountId, email } = await person();
    const { cookie } = await session(accountId);
    const asking = service();
    const newEmail = `${uniqueName("new")}@example.com`;
    await asking.ask("/change-email", { newEmail }, cookie);
    await asking.done(1);
    await confirm(asking, tokenIn(asking.mails[0]), cookie);
    await asking.done(2);
    const other = await person({ email: newEmail });
    const refused = await confirm(asking, tokenIn(asking.mails[1]), cookie);
    expect([refused.status, refused.text]).toEqual([409, expect.stringContaining("keeps the address")]);
    expect([await emailOf(accountId), await emailOf(other.accountId)]).toMatchObject([
      { email },
      { email: newEmail },
    ]);
  });

  it.each(["a reset of the password", "a change of the password"])(
    "is worth nothing after %s",
    async (ending) => {
      const { accountId, email } = await person();
      const { cookie } = await session(accountId);
      const asking = service();
      const newEmail = `${uniqueName("thief")}@example.com`;
      await asking.ask("/change-email", { newEmail }, cookie);
      await asking.done(1);
      await confirm(asking, tokenIn(asking.mails[0]), cookie);
      await asking.done(2);
      if (ending === "a change of the password") {
        const body = { currentPassword: password, newPassword: "a new long password" };
        await asking.ask("/change-password", body, cookie);
      } else {
        await asking.ask("/request-password-reset", { email });
        await asking.done(3);
        const token = /token=(\S+)/.exec(asking.mails[2]?.text ?? "")?.[1] ?? "";
        await asking.ask("/reset-password", { token, newPassword: "a new long password" });
      }
      const later = await session(accountId);
      for (const mail of asking.mails.slice(0, 2))
        expect((await confirm(asking, tokenIn(mail), later.cookie)).status).toBe(400);
      expect(await emailOf(accountId)).toMatchObject({ email });
    },
  );
});

it("a change of address is agreed to by the old one, then by the new one", async () => {
  const { accountId, email } = await person();
  const { cookie } = await session(accountId);
  const newEmail = `${uniqueName("new")}@example.com`;
  const { ask, mails, done } = service();
  expect((await ask("/change-email", { newEmail }, cookie)).status).toBe(200);
  await done(1);
  expect(mails.map(({ to, subject }) => [to, subject])).toEqual([[[email], "Change your email address?"]]);
  expect(mails[0]?.text).toContain(newEmail);
  expect(mails[0]?.text).toContain("your Berth account");
  await confirm({ ask }, tokenIn(mails[0]), cookie);
  await done(2);
  expect(mails[1]?.to).toEqual([newEmail]);
  expect(await rows("SELECT email FROM accounts WHERE id = ?", accountId)).toEqual([{ email }]);
  await confirm({ ask }, tokenIn(mails[1]), cookie);
  expect(await rows("SELECT email FROM accounts WHERE id = ?", accountId)).toEqual([{ email: newEmail }]);
});

it.each(["another reset", "a change of the password", "a change of the address"])(
  "a link to a new password is worth nothing after %s, and a used code stays used",
  async (ending) => {
    const { accountId, email } = await person();
    const { cookie } = await session(accountId);
    const { ask, mails, done } = service();
    const linkIn = (mail: Mail | undefined) => /https?:\S+/.exec(mail?.text ?? "")?.[0] ?? "";
    const tokenOf = async () => {
      await ask("/request-password-reset", { email });
      await done(mails.length + 1);
      return new URL(linkIn(mails.at(-1))).searchParams.get("token");
    };
    const reset = async (token: string | null) =>
      (await ask("/reset-password", { token, newPassword: "a password of the link" })).status;
    const claimed = newId("verification");
    const end = Date.now() + day;
    await write(
      insert("verifications", {
        id: claimed,
        identifier: "used-code",
        value: accountId,
        expires_at: end,
        created_at: 1,
        updated_at: 1,
      }),
    );
    const token = await tokenOf();
    if (ending === "another reset") expect(await reset(await tokenOf())).toBe(200);
    else if (ending === "a change of the password") {
      const body = { currentPassword: password, newPassword: "a new long password" };
      expect((await ask("/change-password", body, cookie)).status).toBe(200);
    } else {
      const newEmail = `${uniqueName("new")}@example.com`;
      await ask("/change-email", { newEmail }, cookie);
      await done(2);
      await confirm({ ask }, tokenIn(mails[1]), cookie);
      await done(3);
      await confirm({ ask }, tokenIn(mails[2]), cookie);
      expect(await rows("SELECT email FROM accounts WHERE id = ?", accountId)).toEqual([{ email: newEmail }]);
    }
    expect(await reset(token)).toBe(400);
    expect(await rows("SELECT id FROM verifications WHERE value = ?", accountId)).toEqual([{ id: claimed }]);
  },
);

it("a password that is changed ends every session, whatever was asked for, and begins one", async () => {
  const { accountId } = await person();
  const { cookie } = await session(accountId);
  await session(accountId);
  const { ask } = service();
  const body = { currentPassword: password, newPassword: "a new long password", revokeOtherSessions: false };
  const changed = await ask("/change-password", body, cookie);
  expect([changed.status, (await sessionsOf(accountId)).length]).toEqual([200, 1]);
  expect((await ask(`${siteUrl}/api/v1/sites`, undefined, cookie)).status).toBe(401);
  expect((await ask(`${siteUrl}/api/v1/sites`, undefined, cookieOf(changed))).status).toBe(200);
});
