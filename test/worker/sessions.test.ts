import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { app } from "../../worker/app.ts";
import { hashPassword, isPassword } from "../../worker/adapters/password.ts";
import { contextOf } from "../../worker/compose.ts";
import { runTasks } from "../../worker/cron.ts";
import {
  account,
  bindings,
  call,
  createSite,
  operator,
  operatorCookie,
  siteUrl,
  uniqueName,
} from "./service.ts";

const email = "operator@example.com";
const password = "correct horse battery";

const signIn = (fields: Record<string, string>, origin = siteUrl) =>
  call("/sign-in", {
    method: "POST",
    redirect: "manual",
    headers: { Origin: origin },
    body: new URLSearchParams(fields),
  });

async function cookie(): Promise<string> {
  await operator();
  const response = await signIn({ email, password });
  expect([response.status, response.headers.get("Location")]).toEqual([303, "/"]);
  const set = response.headers.get("Set-Cookie") ?? "";
  expect(set).toMatch(/HttpOnly/i);
  expect(set).toMatch(/SameSite=Lax/i);
  return set.split(";")[0] ?? "";
}

describe("the forms to sign in and up", () => {
  it("lead on to an address of any length that a program may ask for, and lead home from a longer one", async () => {
    await operator();
    const to = async (next: string) => (await signIn({ email, password, next })).headers.get("Location");
    const asked = `/oauth/authorize?client_id=${"c".repeat(8000)}&state=${"s".repeat(2000)}`;
    expect(await to(asked)).toBe(asked);
    expect(await to(`/${"a".repeat(16_000)}`)).toBe("/");
  });

  it("lose no other field for one that is too long, and make no account without a name", async () => {
    const long = await signIn({ email, password: "p".repeat(2000), next: "/sites" });
    const text = await long.text();
    expect([long.status, text.includes(`value="${email}"`), text.includes("next=%2Fsites")]).toEqual([
      401,
      true,
      true,
    ]);
    const fields = { email: "long-name@example.com", password };
    const response = await call("/sign-up", {
      method: "POST",
      headers: { Origin: siteUrl },
      body: new URLSearchParams({ ...fields, name: "n".repeat(101) }),
    });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining("at most 100")]);
    expect((await signIn(fields)).status).toBe(401);
  });
});

describe("what is refused to whoever is known", () => {
  it("says why: a session is needed, an operator is, or a page of the service; only what is another account's needs no reason", async () => {
    await operator();
    const key = await account();
    const byKey = { Authorization: `Bearer ${key}` };
    const bySession = { Cookie: await operatorCookie(), Origin: "http://localhost:8787" };
    const refused = async (path: string, headers: Record<string, string>, method = "GET") => {
      const answer = await call(path, {
        method,
        headers,
        ...(method === "POST" && { body: JSON.stringify({ email }) }),
      });
      return [answer.status, await answer.json()];
    };
    const because = (reason: string) => [
      403,
      { error: "forbidden", reason: expect.stringContaining(reason) },
    ];
    expect(await refused("/api/v1/keys", byKey)).toEqual(because("dashboard"));
    expect(await refused("/api/v1/hosts", byKey)).toEqual(because("Only operators"));
    for (const path of ["/api/v1/sites", "/api/auth/request-password-reset"])
      expect([
        path,
        await refused(path, { ...bySession, "Content-Type": "application/json" }, "POST"),
      ]).toEqual([path, because(siteUrl)]);
    expect(await refused("/mcp", { ...byKey, Origin: "http://localhost:8787" }, "POST")).toEqual(
      because(siteUrl),
    );
    const { siteId } = await createSite(await operator());
    expect(await refused(`/api/v1/sites/${siteId}`, byKey)).toEqual([403, { error: "forbidden" }]);
  });

  it("tells who opened the sign-in page at another address where to sign in", async () => {
    const page = await call("/sign-in", {
      method: "POST",
      headers: { Origin: "http://localhost:8787", Accept: "text/html" },
      body: new URLSearchParams({ email, password }),
    });
    expect([page.status, await page.text()]).toEqual([
      403,
      expect.stringContaining(`open the service at that address`),
    ]);
  });
});

describe("a session", () => {
  it("is opened by the password of set-up, shows the account's sites, and ends with sign-out", async () => {
    const key = await operator();
    const name = uniqueName("seen-on-the-page");
    await createSite(key, { name });
    const own = await cookie();
    expect(await (await call("/", { headers: { Cookie: own } })).text()).toContain(name);
    await call("/sign-out", {
      method: "POST",
      redirect: "manual",
      headers: { Cookie: own, Origin: siteUrl },
    });
    const after = await call("/", { redirect: "manual", headers: { Cookie: own } });
    expect([after.status, after.headers.get("Location")]).toEqual([303, "/sign-in"]);
    expect((await call("/api/v1/sites", { headers: { Cookie: own } })).status).toBe(401);
  });

  it("has pages that nothing keeps, so that who comes after it sees none of them", async () => {
    const key = await operator();
    const { invoiceToken } = await createSite(key, { name: uniqueName("kept") });
    const own = await cookie();
    for (const path of [
      "/",
      "/account",
      "/sites/new",
      "/device",
      "/device?code=BCDF-GHJK",
      `/invoice/${invoiceToken}`,
    ])
      expect((await call(path, { headers: { Cookie: own } })).headers.get("Cache-Control"), path).toBe(
        "no-store",
      );
  });

  it("is refused alike for a wrong password and an unknown e-mail", async () => {
    await operator();
    const answers = await Promise.all([
      signIn({ email, password: "wrong" }),
      signIn({ email: "nobody@example.com", password }),
      signIn({ email }),
    ]);
    for (const answer of answers) {
      expect([answer.status, answer.headers.get("Set-Cookie")]).toEqual([401, null]);
      expect(await answer.text()).toContain("is wrong");
    }
  });

  it("is accepted by the API, where a change needs our own Origin", async () => {
    const own = await cookie();
    for (const method of ["GET", "HEAD"])
      expect((await call("/api/v1/sites", { method, headers: { Cookie: own } })).status).toBe(200);
    const create = (origin?: string) =>
      call("/api/v1/hosts", {
        method: "POST",
        headers: {
          Cookie: own,
          "Content-Type": "application/json",
          ...(origin !== undefined && { Origin: origin }),
        },
        body: JSON.stringify({ name: uniqueName("by-session") }),
      });
    expect((await create()).status).toBe(403);
    expect((await create("https://evil.example")).status).toBe(403);
    expect((await create(siteUrl)).status).toBe(201);
    expect((await signIn({ email, password }, "https://evil.example")).status).toBe(403);
  });

  it("is answered under an Idempotency-Key for itself: a key of the account hears nothing of it", async () => {
    const own = await cookie();
    const create = (credentials: Record<string, string>) =>
      call("/api/v1/keys", {
        method: "POST",
        headers: { "Content-Type": "application/json", "Idempotency-Key": "one-key", ...credentials },
        body: JSON.stringify({ name: "By session" }),
      });
    const bySession = { Cookie: own, Origin: siteUrl };
    expect((await create(bySession)).status).toBe(201);
    expect((await create(bySession)).headers.get("Idempotency-Replayed")).toBe("true");
    const byKey = await create({ Authorization: `Bearer ${await operator()}` });
    expect([byKey.status, await byKey.json()]).toMatchObject([403, { error: "forbidden" }]);
  });

  it("is stored as a hash, as is the password", async () => {
    const [, value = ""] = (await cookie()).split("=");
    const [token = ""] = decodeURIComponent(value).split(".");
    expect(token.length).toBeGreaterThanOrEqual(32);
    const rows = JSON.stringify([
      await bindings.DB.prepare("SELECT * FROM sessions").all(),
      await bindings.DB.prepare("SELECT * FROM identities").all(),
    ]);
    expect(rows).not.toContain(token);
    expect(rows).not.toContain(password);
    expect(rows).toContain("scrypt$16384$16$1$");
  });

  it("is looked for only with our signature: an invented cookie, or a stolen token with another, reads nothing", async () => {
    const own = await cookie();
    const [name, value = ""] = own.split("=");
    const [token = "", signature = ""] = decodeURIComponent(value).split(".");
    const untouched = new Proxy({}, { get: () => () => expect.fail("something was looked for") });
    const closed = { ...bindings, DB: untouched, RATE_LIMIT: untouched, KEY_GUARD: untouched };
    const ask = (made: string, path: string) =>
      app.fetch(
        new Request(siteUrl + path, {
          headers: { Cookie: `${name}=${encodeURIComponent(made)}` },
          redirect: "manual",
        }),
        closed,
        {
          waitUntil: () => undefined,
          passThroughOnException: () => undefined,
        } as unknown as ExecutionContext,
      );
    const other = `${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`;
    for (const made of [
      "A".repeat(32),
      token,
      `${token}.`,
      `.${signature}`,
      `${token}.${other}`,
      `${token}x.${signature}`,
    ])
      expect([made, (await ask(made, "/api/v1/sites")).status, (await ask(made, "/sites")).status]).toEqual([
        made,
        401,
        303,
      ]);
    expect((await call("/api/v1/sites", { headers: { Cookie: own } })).status).toBe(200);
  });

  it("that has ended is looked for once, however often its cookie comes", async () => {
    const own = await cookie();
    await post("/sign-out", {}, own);
    let reads = 0;
    const DB = new Proxy(bindings.DB, {
      get: (db, name: keyof D1Database) =>
        name === "prepare" ? (sql: string) => (reads++, db.prepare(sql)) : db[name],
    });
    for (let count = 0; count < 5; count++) {
      const request = new Request(`${siteUrl}/api/v1/sites`, { headers: { Cookie: own } });
      const answer = await app.fetch(request, { ...bindings, DB }, {
        waitUntil: () => undefined,
        passThroughOnException: () => undefined,
      } as unknown as ExecutionContext);
      expect(answer.status).toBe(401);
    }
    expect(reads).toBe(1);
  });

  it("has its token in the cookie only: no answer tells it to a page's script", async () => {
    await operator();
    const asJson = (method: string, path: string, own: string, body?: object) =>
      call(`/api/auth${path}`, {
        method,
        headers: { "Content-Type": "application/json", Origin: siteUrl, Cookie: own },
        ...(body && { body: JSON.stringify(body) }),
      });
    const answers = [await asJson("POST", "/sign-in/email", "", { email, password })];
    const own = cookieOf(answers[0] as Response);
    for (const path of ["/get-session", "/list-sessions"]) answers.push(await asJson("GET", path, own));
    const again = { currentPassword: password, newPassword: password, revokeOtherSessions: true };
    const changed = await asJson("POST", "/change-password", own, again);
    answers.push(changed);
    for (const answer of answers) {
      expect(answer.status).toBe(200);
      const text = await answer.text();
      expect(text).toMatch(/"(?:userId|id)":"acc_/);
      for (const set of [own, cookieOf(changed)])
        expect(text).not.toContain(decodeURIComponent(set).split("=")[1]?.split(".")[0]);
      expect(text).not.toContain('"token"');
    }
  });

  it("is forgotten at its end, where nobody comes back; the last one without its address and browser", async () => {
    const accountId = "acc_001m80000000000000000000001";
    const sessionOf = (id: string, at: number) =>
      bindings.DB.prepare(
        `INSERT INTO sessions (id, token_hash, account_id, ip_address, user_agent, created_at, updated_at, expires_at)
         VALUES (?, ?, ?, '192.0.2.7', 'Browser', ?, ?, ?)`,
      )
        .bind(id, id, accountId, at, at, at)
        .run();
    await sessionOf("session_old", 1);
    await sessionOf("session_last", 2);
    await Promise.all(runTasks(contextOf(bindings, { type: "system" }, () => undefined)));
    const { results } = await bindings.DB.prepare(
      "SELECT id, ip_address, user_agent, updated_at FROM sessions WHERE account_id = ?",
    )
      .bind(accountId)
      .all();
    // Operators see when the account was last used.
    expect(results).toEqual([{ id: "session_last", ip_address: null, user_agent: null, updated_at: 2 }]);
    await bindings.DB.prepare("DELETE FROM sessions WHERE account_id = ?").bind(accountId).run();
  });

  it("past its end is worth nothing", async () => {
    const own = await cookie();
    await bindings.DB.prepare("UPDATE sessions SET expires_at = 1").run();
    expect((await call("/api/v1/sites", { headers: { Cookie: own } })).status).toBe(401);
  });
});

const post = (path: string, fields: Record<string, string>, own = "") =>
  call(path, {
    method: "POST",
    redirect: "manual",
    headers: { Origin: siteUrl, ...(own && { Cookie: own }) },
    body: new URLSearchParams(fields),
  });
const cookieOf = (response: Response) => (response.headers.get("Set-Cookie") ?? "").split(";")[0] ?? "";
const works = async (own: string) =>
  (await call("/api/v1/sites", { headers: { Cookie: own } })).status === 200;

/** The page after a key was created there, which shows it once. */
async function newKey(own: string): Promise<string> {
  const { headers } = await post("/account/keys", { form: "create", name: "Laptop" }, own);
  const said = headers.getSetCookie().map((one) => one.split(";")[0] ?? "");
  const Cookie = [own, ...said].join("; ");
  return (await call(headers.get("Location") ?? "", { headers: { Cookie } })).text();
}

/** A person who signed up by the page and opened the mailed link. */
async function person(mails = mailbox()) {
  const email = `${uniqueName("person")}@example.com`;
  const response = await post("/sign-up", { name: "Ada", email, password });
  expect([response.status, response.headers.get("Set-Cookie")]).toEqual([200, null]);
  const confirmed = await post("/confirm-address", { token: await tokenTo(mails, email) });
  expect(confirmed.headers.get("Location")).toBe("/confirmed");
  const signedIn = await post("/sign-in", { email, password });
  expect([signedIn.status, signedIn.headers.get("Location")]).toEqual([303, "/"]);
  return { email, own: cookieOf(signedIn) };
}

/** The token of the link that confirms the address. */
async function tokenTo(mails: Mail[], email: string): Promise<string> {
  const sent = () => mails.find(({ to, subject }) => to[0] === email && subject.startsWith("Confirm"));
  await vi.waitFor(() => expect(sent()).toBeDefined(), 10_000);
  return /confirm-address\?token=(\S+)/.exec(sent()?.text ?? "")?.[1] ?? "";
}

type Mail = { to: string[]; subject: string; text: string };
/** Mail goes to the configured service: what it was handed. */
function mailbox() {
  const mails: Mail[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    expect(request.url).toBe("https://mail.test/emails");
    mails.push(await request.json<Mail>());
    return Response.json({ id: "1" });
  });
  return mails;
}
afterEach(() => vi.restoreAllMocks());

describe("an account", () => {
  it("is opened by its owner as a user, whatever role the request asks for", async () => {
    const mails = mailbox();
    const email = `${uniqueName("person")}@example.com`;
    const asked = await call("/api/auth/sign-up/email", {
      method: "POST",
      headers: { "Content-Type": "application/json", Origin: siteUrl },
      body: JSON.stringify({ name: "Eve", email, password, role: "operator", plan: "pro" }),
    });
    expect(asked.status).toBe(200);
    await tokenTo(mails, email);
    const row = await bindings.DB.prepare("SELECT role, plan FROM accounts WHERE email = ?")
      .bind(email)
      .first();
    expect(row).toEqual({ role: "user", plan: "free" });
    const { own } = await person(mails);
    expect((await call("/api/v1/hosts", { headers: { Cookie: own } })).status).toBe(403);
    const { results } = await bindings.DB.prepare("SELECT token_hash FROM sessions").all<{
      token_hash: string;
    }>();
    for (const row of results) expect(row.token_hash).toMatch(/^[0-9a-f]{64}$/);
  });

  it("is opened alike for an address that has one and for one that has none; its owner is told by mail", async () => {
    const mails = mailbox();
    const { email: known } = await person(mails);
    const fresh = `${uniqueName("person")}@example.com`;
    mails.length = 0;
    const shown = async (path: string, email: string) => {
      const fields = { name: "B", email, password: "another long password" };
      const isForm = !path.startsWith("/api");
      const answer = await call(path, {
        method: "POST",
        redirect: "manual",
        headers: { Origin: siteUrl, ...(!isForm && { "Content-Type": "application/json" }) },
        body: isForm ? new URLSearchParams(fields) : JSON.stringify(fields),
      });
      const told = [...answer.headers].filter(([name]) => name !== "x-request-id" && name !== "date");
      return [answer.status, told, (await answer.text()).replaceAll(email, "…")];
    };
    for (const path of [
      "/sign-up",
      "/sign-in",
      "/forgot-password",
      "/api/auth/sign-up/email",
      "/api/auth/sign-in/email",
      "/api/auth/request-password-reset",
      "/api/auth/send-verification-email",
      "/api/auth/change-email",
    ])
      expect([path, await shown(path, fresh)]).toEqual([path, await shown(path, known)]);
    const subjects = (email: string) =>
      new Set(mails.filter(({ to }) => to[0] === email).map(({ subject }) => subject));
    await vi.waitFor(() => expect(subjects(known)).toContain("You already have an account"), 10_000);
    expect(subjects(known)).not.toContain("Confirm your email address");
    await tokenTo(mails, fresh);
    expect((await post("/sign-in", { email: known, password })).status).toBe(303);
  });

  it("is answered before anything is looked up, so that no time tells whether there is one", async () => {
    const never = new Promise<never>(() => undefined);
    const stuck = {
      bind: () => stuck,
      all: () => never,
      run: () => never,
      raw: () => never,
      first: () => never,
    };
    // Whether there are sign-ups at all is no account's.
    const DB = {
      prepare: (sql: string) => (sql.includes("installation_settings") ? bindings.DB.prepare(sql) : stuck),
      batch: () => never,
    };
    for (const path of ["/sign-up/email", "/request-password-reset", "/send-verification-email"]) {
      const request = new Request(`${siteUrl}/api/auth${path}`, {
        method: "POST",
        headers: {
          "Content-Type": "application/json",
          Origin: siteUrl,
          "CF-Connecting-IP": `203.0.113.${path.length}`,
        },
        body: JSON.stringify({ name: "B", email: "a@example.com", password }),
      });
      const answer = await app.fetch(request, { ...bindings, DB }, {
        waitUntil: () => undefined,
        passThroughOnException: () => undefined,
      } as unknown as ExecutionContext);
      expect([path, answer.status]).toEqual([path, 200]);
    }
  });

  it("is used once its address is confirmed, and a link that does not confirm it says so", async () => {
    const mails = mailbox();
    const email = `${uniqueName("person")}@example.com`;
    await post("/sign-up", { name: "Ada", email, password });
    const token = await tokenTo(mails, email);
    expect((await post("/sign-in", { email, password })).status).toBe(401);
    expect(await (await call(`/confirm-address?token=x${token}`)).text()).toContain("confirms no address");
    expect((await post("/confirm-address", { token: `x${token}` })).status).toBe(400);
    expect((await post("/sign-in", { email, password })).status).toBe(401);
    await post("/confirm-address", { token });
    expect(await (await call("/confirmed")).text()).toContain("Your email address is confirmed");
    expect((await post("/sign-in", { email, password })).status).toBe(303);
  });

  it("is not opened with a short password, nor from another site's page", async () => {
    mailbox();
    const other = `${uniqueName("person")}@example.com`;
    const short = await (await post("/sign-up", { name: "B", email: other, password: "short" })).text();
    expect(short).toContain("at least 12 characters");
    for (const typed of ["B", other]) expect(short).toContain(`value="${typed}"`);
    const evil = await call("/api/auth/sign-up/email", {
      method: "POST",
      headers: { "Content-Type": "application/json", Origin: "https://evil.example", Cookie: "a=b" },
      body: JSON.stringify({ name: "B", email: other, password }),
    });
    expect(evil.status).toBe(403);
    expect(await evil.json()).toMatchObject({ error: "forbidden" });
    expect(
      await bindings.DB.prepare("SELECT id FROM accounts WHERE email = ?").bind(other).first(),
    ).toBeNull();
  });

  it("changes its password with the current one only, and every other browser is signed out", async () => {
    const { email, own } = await person();
    const other = cookieOf(await post("/sign-in", { email, password }));
    const change = (current: string) =>
      post("/account", { form: "password", current, password: "a new long password" }, own);
    const refused = await change("wrong");
    expect([refused.status, await works(other)]).toEqual([400, true]);
    expect(await refused.text()).toContain("This is not your current password");
    const changed = await change(password);
    expect([changed.status, await works(other), await works(cookieOf(changed))]).toEqual([303, false, true]);
    expect((await post("/sign-in", { email, password })).status).toBe(401);
    expect((await post("/sign-in", { email, password: "a new long password" })).status).toBe(303);
  });

  it("gets a new password by a mailed link that works once and ends every session", async () => {
    const mails = mailbox();
    const { email, own } = await person(mails);
    mails.length = 0;
    for (const to of [email, "nobody@example.com"])
      expect(await (await post("/forgot-password", { email: to })).text()).toContain(
        "If an account with this address exists",
      );
    await vi.waitFor(() => expect(mails.map(({ to }) => to)).toEqual([[email]]), 10_000);
    const token = /reset-password\?token=(\S+)/.exec(mails[0]?.text ?? "")?.[1] ?? "";
    expect(JSON.stringify(await bindings.DB.prepare("SELECT * FROM verifications").all())).not.toContain(
      token,
    );
    const reset = () => post("/reset-password", { token, password: "a new long password" });
    expect([(await reset()).status, (await reset()).status, await works(own)]).toEqual([303, 400, false]);
    expect((await post("/sign-in", { email, password: "a new long password" })).status).toBe(303);
  });

  it("that gets a new password loses its keys with it, unless its owner keeps them", async () => {
    const mails = mailbox();
    const reset = async (path: string, fields: (token: string) => object) => {
      const { email, own } = await person(mails);
      const made = await newKey(own);
      const key = /sk_[0-9A-Za-z]{50}/.exec(made)?.[0] ?? "";
      const asKey = async () =>
        (await call("/api/v1/sites", { headers: { Authorization: `Bearer ${key}` } })).status;
      expect(await asKey()).toBe(200);
      mails.length = 0;
      await post("/forgot-password", { email });
      // The notice of the new key may come as late.
      const link = () => mails.flatMap(({ text }) => /reset-password\?token=(\S+)/.exec(text)?.[1] ?? []);
      await vi.waitFor(() => expect(link()).toHaveLength(1), 10_000);
      const [token = ""] = link();
      const isForm = path === "/reset-password";
      const fieldsOfForm = fields(token) as Record<string, string>;
      const done = await call(path, {
        method: "POST",
        redirect: "manual",
        headers: { Origin: siteUrl, ...(!isForm && { "Content-Type": "application/json" }) },
        body: isForm ? new URLSearchParams(fieldsOfForm) : JSON.stringify(fieldsOfForm),
      });
      expect(done.status).toBe(isForm ? 303 : 200);
      return asKey();
    };
    const password = "a new long password";
    const page = await (await call("/reset-password?token=x")).text();
    expect.soft(page).toMatch(/name="revokeKeys" value="yes" checked(?:="")?/);
    expect(await reset("/reset-password", (token) => ({ token, password, revokeKeys: "yes" }))).toBe(401);
    expect(await reset("/reset-password", (token) => ({ token, password }))).toBe(200);
    const body = (token: string) => ({ token, newPassword: password });
    expect(await reset("/api/auth/reset-password", body)).toBe(401);
    expect(await reset("/api/auth/reset-password?keepKeys=1", body)).toBe(200);
  });

  it("has the way around on every page while signed in, refusals, documents and invoices too, and nobody else has", async () => {
    const { own } = await person();
    const key = await operator();
    const { invoiceToken } = await createSite(key, { name: uniqueName("around") });
    const shown = async (path: string, headers: Record<string, string>) =>
      (await (await call(path, { headers: { Accept: "text/html", ...headers } })).text()).includes(
        'action="/sign-out"',
      );
    for (const path of ["/", "/docs", "/device", `/invoice/${invoiceToken}`, "/nothing", "/sites/site_none"])
      expect([path, await shown(path, { Cookie: own }), await shown(path, {})]).toEqual([path, true, false]);
    expect(await shown("/sign-in", { Cookie: own })).toBe(false);
  });

  it("has its keys on a page: made, shown once, revoked", async () => {
    const { own } = await person();
    const made = await newKey(own);
    const key = /sk_[0-9A-Za-z]{50}/.exec(made)?.[0] ?? "";
    const asKey = () => call("/api/v1/sites", { headers: { Authorization: `Bearer ${key}` } });
    expect((await asKey()).status).toBe(200);
    const page = await (await call("/account/keys", { headers: { Cookie: own } })).text();
    expect([page.includes("Laptop"), page.includes(key)]).toEqual([true, false]);
    const id = /name="id" value="(key_\w+)"/.exec(page)?.[1] ?? "";
    await post("/account/keys", { form: `revoke:${id}`, id }, own);
    expect((await asKey()).status).toBe(401);
  });

  it("is found by GitHub's sign-in, which comes back with a state of ours only, and with a name that we would take", async () => {
    mailbox();
    const begun = await post("/sign-in/github", {});
    const to = new URL(begun.headers.get("Location") ?? "");
    expect([begun.status, to.origin, to.searchParams.get("client_id")]).toEqual([
      303,
      "https://github.com",
      "github-id",
    ]);
    vi.mocked(fetch).mockImplementation(async (input) => {
      const { url } = new Request(input);
      if (url.startsWith("https://github.com/login/oauth/access_token"))
        return Response.json({ access_token: "gho_test", token_type: "bearer", scope: "user:email" });
      if (url === "https://api.github.com/user/emails")
        return Response.json([
          { email: "octo@example.com", primary: true, verified: true, visibility: null },
        ]);
      if (url === "https://api.github.com/user")
        return Response.json({
          id: 1,
          login: "octo",
          name: "Octo \u202egro",
          email: "octo@example.com",
          avatar_url: "",
        });
      throw new Error(`unexpected request to ${url}`);
    });
    const back = (state: string) =>
      call(`/api/auth/callback/github?code=c&state=${state}`, {
        redirect: "manual",
        headers: {
          Cookie: begun.headers
            .getSetCookie()
            .map((one) => one.split(";")[0])
            .join("; "),
        },
      });
    expect(await works(cookieOf(await back("forged")))).toBe(false);
    const done = await back(to.searchParams.get("state") ?? "");
    const own =
      done.headers
        .getSetCookie()
        .find((one) => one.includes("berth_session"))
        ?.split(";")[0] ?? "";
    expect(await works(own)).toBe(true);
    const kept = JSON.stringify(await bindings.DB.prepare("SELECT * FROM identities").all());
    expect([kept.includes("github"), kept.includes("gho_test")]).toEqual([true, false]);
    const account = bindings.DB.prepare("SELECT name FROM accounts WHERE email = 'octo@example.com'");
    expect(await account.first("name")).toBe("octo");
  });

  it("keeps a session that is used, and says so to the browser", async () => {
    const { own } = await person();
    await bindings.DB.prepare("UPDATE sessions SET expires_at = ?")
      .bind(Date.now() + 86_400_000)
      .run();
    const used = await call("/", { headers: { Cookie: own } });
    expect(cookieOf(used)).toBe(own);
    expect(used.headers.get("Set-Cookie")).toMatch(
      /^berth_session=(?=.*; Max-Age=2592000)(?=.*; Path=\/(;|$))(?=.*; HttpOnly)(?=.*; SameSite=Lax)(?!.*; Secure)/,
    );
    await vi.waitFor(async () => {
      const row = await bindings.DB.prepare("SELECT max(expires_at) AS at FROM sessions").first<{
        at: number;
      }>();
      expect(row?.at).toBeGreaterThan(Date.now() + 29 * 86_400_000);
    }, 10_000);
    // Once a day is enough.
    expect((await call("/", { headers: { Cookie: own } })).headers.get("Set-Cookie")).toBeNull();
  });
});

describe("passwords", () => {
  it("are hashed twenty times a minute for one address at most, right or wrong, whatever they are sent to", async () => {
    await operator();
    const from = { "CF-Connecting-IP": "203.0.113.88" };
    const send = (path: string, body: object, headers = from) =>
      call(`/api/auth${path}`, {
        method: "POST",
        headers: { "Content-Type": "application/json", Origin: siteUrl, ...headers },
        body: JSON.stringify(body),
      });
    expect((await send("/sign-in/email", { email, password })).status).toBe(200);
    const tried: Response[] = [];
    // The queue of all passwords, which has limits of its own, is empty each time, however fast this machine is.
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    vi.setSystemTime(Date.now() + 10_000);
    for (let at = 0; at < 29; at++) {
      vi.setSystemTime(Date.now() + 300);
      tried.push(await send("/sign-in/email", { email: `${at}@example.com`, password }));
    }
    expect(tried.filter(({ status }) => status === 401)).toHaveLength(19);
    expect(tried.filter(({ status }) => status === 429)).toHaveLength(10);
    const fields = {
      name: "B",
      email: "b@example.com",
      password,
      newPassword: password,
      currentPassword: password,
      token: "x",
    };
    for (const path of ["/sign-in/email", "/sign-up/email", "/reset-password", "/change-password"])
      expect([path, (await send(path, fields)).status]).toEqual([path, 429]);
    vi.setSystemTime(Date.now() + 10_000);
    expect(
      (await send("/sign-in/email", { email, password }, { "CF-Connecting-IP": "203.0.113.89" })).status,
    ).toBe(200);
  });

  it("hold up nobody else while they are hashed: between two of them everybody has a turn", async () => {
    const stored = await hashPassword(password, new Uint8Array(16));
    const told: string[] = [];
    const others = new AbortController();
    const answering = (async () => {
      while (!others.signal.aborted) {
        expect((await call("/health")).status).toBe(200);
        told.push("health");
        await scheduler.wait(1);
      }
    })();
    const turning = (async () => {
      while (!others.signal.aborted) {
        await scheduler.wait(1);
        told.push("turn");
      }
    })();
    const hashed = Array.from({ length: 6 }, async () => {
      expect(await isPassword(password, stored)).toBe(true);
      told.push("hash");
    });
    await Promise.all(hashed);
    others.abort();
    await Promise.all([answering, turning]);
    expect(told.filter((one) => one === "hash")).toHaveLength(6);
    // On a busy machine a turn may come one late.
    expect(told.join(" ")).not.toMatch(/hash hash hash hash/);
    const between = told.slice(told.indexOf("hash"), told.lastIndexOf("hash"));
    expect(between.filter((one) => one === "health").length).toBeGreaterThan(1);
  });

  it("of which too many wait are refused, and told when to be sent again", async () => {
    await operator();
    const tried = await Promise.all(
      Array.from({ length: 60 }, () =>
        call("/api/auth/sign-in/email", { method: "POST", headers: { Origin: siteUrl } }),
      ),
    );
    const refused = tried.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(10);
    for (const { headers } of refused) expect(headers.get("Retry-After")).toBe("5");
    await expect.poll(async () => (await signIn({ email, password })).status).toBe(303);
  });
});

describe("while strangers' passwords take all there is time for", () => {
  const from = (address: string, headers: Record<string, string> = {}) =>
    call("/api/auth/sign-in/email", {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        Origin: siteUrl,
        "CF-Connecting-IP": address,
        ...headers,
      },
      body: JSON.stringify({ email, password }),
    });

  it("who has signed in on this device before still does, for their own account and no other", async () => {
    await operator();
    const deviceIn = (answer: Response) =>
      answer.headers.getSetCookie().find((one) => one.includes("_device="));
    let own = "";
    // The queue may still be full of an earlier test's.
    const patience = { interval: 1000, timeout: 15_000 };
    await expect
      .poll(async () => (own = deviceIn(await from("198.51.100.1")) ?? ""), patience)
      .toMatch(/HttpOnly/i);
    const device = { Cookie: own.split(";")[0]! };
    const others = () =>
      Promise.all(
        Array.from({ length: 40 }, (_, at) =>
          call("/api/auth/sign-in/email", {
            method: "POST",
            headers: {
              ...device,
              "Content-Type": "application/json",
              Origin: siteUrl,
              "CF-Connecting-IP": `192.0.2.${at}`,
            },
            body: JSON.stringify({ email: `stranger${at}@example.com`, password }),
          }),
        ),
      );
    const flood = others();
    // All of the flood is before it.
    await expect.poll(async () => (await from("198.51.100.2")).status).toBe(429);
    expect((await from("198.51.100.1", device)).status).toBe(200);
    const answers = await flood;
    expect(answers.filter(({ status }) => status === 429).length).toBeGreaterThan(0);
  });
});

describe("pages without credentials", () => {
  it("take all addresses of one IPv6 network for one client, as whoever has one has all of them", async () => {
    const from = (address: string) => call("/sign-in", { headers: { "CF-Connecting-IP": address } });
    await Promise.all(Array.from({ length: 600 }, (_, host) => from(`2001:db8:0:7::${host.toString(16)}`)));
    expect((await from("2001:db8:0:7:ffff:ffff:ffff:ffff")).status).toBe(429);
    expect((await from("2001:DB8:0000:0007:1::1")).status).toBe(429);
    expect((await from("2001:db8:0:8::1")).status).toBe(200);
  });

  it("are limited per client address, whatever is posted to them", async () => {
    await operator();
    const from = { "CF-Connecting-IP": "203.0.113.77" };
    await Promise.all(Array.from({ length: 600 }, () => call("/sign-in", { headers: from })));
    for (const path of ["/sign-in", "/sign-up", "/forgot-password", "/reset-password"]) {
      const form = { Origin: siteUrl, ...from };
      const body = new URLSearchParams({ email, password, token: "guessed", name: "Somebody" });
      const posted = await call(path, { method: "POST", redirect: "manual", headers: form, body });
      expect([path, posted.status]).toEqual([path, 429]);
      expect(posted.headers.get("Retry-After")).toMatch(/^[1-9]\d?$/);
      expect([path, (await call(path, { headers: from })).status]).toEqual([path, 429]);
    }
    const setup = await call("/setup", {
      method: "POST",
      headers: {
        Authorization: `Bearer ${"guessed".repeat(8)}`,
        "Content-Type": "application/json",
        ...from,
      },
      body: "{}",
    });
    expect([setup.status, await setup.json()]).toEqual([429, { error: "rate_limited" }]);
    expect((await signIn({ email, password })).status).toBe(303);
  });
});
