import { Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { operations, type Operation } from "../../protocol/api/operations.ts";
import { refuseSuspended, requireAccess } from "../../worker/api/access.ts";
import { isChange } from "../../worker/api/call.ts";
import type { AppEnv } from "../../worker/app-env.ts";
import type { Ctx, Suspended } from "../../worker/ctx.ts";
import { AppError } from "../../worker/domain/app-error.ts";
import { answerHeaders } from "../../worker/middleware/answer-headers.ts";
import { anybody, authenticate, authenticateMcp } from "../../worker/middleware/authenticate.ts";
import { drainRequestBody, limitBody, maxBodyBytes, requireJson } from "../../worker/middleware/body.ts";
import {
  cookiePrefix,
  isSecure,
  sessionCookie,
  signedSessionToken,
  signsInWithGitHub,
} from "../../worker/adapters/auth.ts";
import { configOf } from "../../worker/config.ts";
import { sha256Hex } from "../../worker/domain/tokens.ts";
import { knownAuthQuery } from "../../worker/middleware/known-query.ts";
import { isKnownDevice, knownDeviceCookie } from "../../worker/middleware/known-device.ts";
import { ownerOf } from "./assistant.ts";
import { actAs, contextFor } from "../../worker/middleware/context.ts";
import { httpsOnly } from "../../worker/middleware/https.ts";
import { offersSignUp, preparePage, say } from "../../worker/middleware/page.ts";
import { prefetchRulesPath } from "../../worker/pages/kit/prefetch.ts";
import { noteSession, requireSameOrigin, sessionActor } from "../../worker/middleware/session.ts";
import { signedIn, toSignIn } from "../../worker/middleware/signed-in.ts";
import { endViewing, startViewing } from "../../worker/middleware/view-as.ts";
import { crashingDatabase } from "./crashing-database.ts";
import { ask, execution, guardedKey, keyOf, made, notedLimits } from "./direct.ts";
import { rows } from "./stripe-service.ts";
import {
  account,
  api,
  bindings,
  call,
  newSession,
  operator,
  signedCookie,
  siteUrl,
  uniqueName,
} from "./service.ts";

beforeEach(() => void vi.restoreAllMocks());
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("a body", () => {
  const app = made()
    .use(requireJson)
    .all("/", async (c) =>
      c.json({
        method: c.req.method,
        body: await c.req.text(),
        type: c.req.header("Content-Type") ?? null,
        other: c.req.header("X-Other") ?? null,
      }),
    );
  const send = async (body: string | Uint8Array | null, type?: string, method = "POST") => {
    const headers = { "X-Other": "kept", ...(type !== undefined && { "Content-Type": type }) };
    const response = await ask(app, "/", { method, headers, ...(body !== null && { body }) });
    return { status: response.status, answer: await response.json<Record<string, unknown>>() };
  };

  it("is JSON that is declared as such", async () => {
    for (const type of ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON ;a=b"])
      expect(await send("[1]", type), type).toMatchObject({ status: 200, answer: { body: "[1]", type } });
    for (const type of ["text/plain", "application/jsonp", "text/application/json", "xapplication/json", ""])
      expect([type, (await send("[1]", type)).status]).toEqual([type, 415]);
    expect(await send("[1", "application/json")).toEqual({
      status: 400,
      answer: { error: "invalid_request", issues: [{ path: "", message: "The body is not valid JSON" }] },
    });
  });

  it("that is nested deeper than anything here is refused before it is parsed, but brackets in its texts are none", async () => {
    const nested = (depth: number) => `${'{"a":['.repeat(depth / 2)}1${"]}".repeat(depth / 2)}`;
    const text = JSON.stringify([`\\"${"[".repeat(200)}`, "\\", ...Array.from({ length: 200 }, () => [{}])]);
    for (const accepted of [nested(100), text])
      expect(await send(accepted, "application/json")).toMatchObject({ status: 200 });
    for (const refused of [nested(102), "[".repeat(500_000)])
      expect(await send(refused, "application/json")).toMatchObject({
        status: 400,
        answer: { issues: [{ path: "", message: "The body is nested more than 100 deep" }] },
      });
  });

  it("that is not UTF-8 is refused: it would be read as other text", async () => {
    const broken = [[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80]];
    const sent = (bytes: number[]) =>
      send(new Uint8Array([0x22, ...bytes, 0x22]), "application/json; charset=utf-8");
    for (const bytes of broken)
      expect([bytes, await sent(bytes)]).toEqual([
        bytes,
        {
          status: 400,
          answer: {
            error: "invalid_request",
            issues: [{ path: "", message: "The body is not valid UTF-8" }],
          },
        },
      ]);
    const valid = [0xc3, 0xa9, 0xef, 0xbf, 0xbd];
    expect(await sent(valid)).toMatchObject({ status: 200, answer: { body: '"é\ufffd"' } });
  });

  it("that is empty counts as none, whatever it says it is", async () => {
    for (const method of ["POST", "PATCH", "DELETE"])
      expect(await send("", "text/plain", method)).toEqual({
        status: 200,
        answer: { method, body: "", type: null, other: "kept" },
      });
  });

  it("has one MiB at most", async () => {
    const limited = made()
      .use(limitBody)
      .post("/", async (c) => c.text(`${(await c.req.text()).length}`));
    const post = (length: number) => ask(limited, "/", { method: "POST", body: "x".repeat(length) });
    expect(await (await post(maxBodyBytes)).text()).toBe("1048576");
    expect((await post(maxBodyBytes + 1)).status).toBe(413);
  });

  it("is read on after a refusal, eight MiB of it at most, and after nothing else", async () => {
    const sent = async (status: 200 | 399 | 400, chunks: number, isTaken = false) => {
      let given = 0;
      let isCancelled = false;
      const body = new ReadableStream<Uint8Array>(
        {
          pull: (out) => (given++ < chunks ? out.enqueue(new Uint8Array(maxBodyBytes)) : out.close()),
          cancel: () => void (isCancelled = true),
        },
        { highWaterMark: 0 },
      );
      const draining = new Hono<AppEnv>().use(drainRequestBody).post("/", (c) => {
        if (isTaken) c.req.raw.body?.getReader();
        return new Response("answered", { status: status === 399 ? 302 : status });
      });
      const response = await draining.request("/", { method: "POST", body });
      const text = await response.text();
      return { text, given: Math.min(given, chunks), isCancelled };
    };
    expect(await sent(400, 3)).toEqual({ text: "answered", given: 3, isCancelled: false });
    expect(await sent(400, 20)).toEqual({ text: "answered", given: 8, isCancelled: true });
    expect(await sent(200, 3)).toMatchObject({ text: "answered", given: 0 });
    expect(await sent(399, 3)).toMatchObject({ text: "answered", given: 0 });
    expect(await sent(400, 3, true)).toMatchObject({ text: "answered", given: 0 });
  });

  it("that breaks off after a refusal does no harm: the answer was given", async () => {
    const draining = new Hono<AppEnv>()
      .use(drainRequestBody)
      .post("/", () => new Response("answered", { status: 400 }));
    const body = new ReadableStream<Uint8Array>({ pull: (out) => out.error(new Error("gone")) });
    const response = await draining.request("/", { method: "POST", body });
    expect(await response.text()).toBe("answered");
  });

  it("that nobody sends the rest of is waited for five seconds after a refusal, and no timer is left of one that ends", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const draining = new Hono<AppEnv>()
      .use(drainRequestBody)
      .post("/", () => new Response("answered", { status: 400 }));
    let isCancelled = false;
    const body = new ReadableStream<Uint8Array>({
      start: (out) => out.enqueue(new Uint8Array(1)),
      cancel: () => void (isCancelled = true),
    });
    const text = (await draining.request("/", { method: "POST", body })).text();
    await vi.advanceTimersByTimeAsync(4999);
    expect(isCancelled).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect([await text, isCancelled]).toEqual(["answered", true]);
    expect(await (await draining.request("/", { method: "POST", body: "whole" })).text()).toBe("answered");
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("every answer", () => {
  const elsewhere = "https://berth.example/elsewhere";
  const app = made()
    .use((c, next) => {
      c.set("requestId", "request-1");
      return next();
    })
    .use(answerHeaders, httpsOnly)
    .get("/", (c) => c.text("hello"))
    .get("/kept", (c) => c.text("hello", 200, { "Cache-Control": "max-age=9", "X-Request-Id": "own" }))
    .get("/led", () => Response.redirect(elsewhere))
    .get("/socket", () => new Response(null, { status: 101, webSocket: new WebSocketPair()[0] }));
  const secure = { ...bindings, SITE_URL: siteUrl.replace(/.*/, "https://berth.example") };
  const headersOf = async (url: string, env: object) => {
    const { status, headers } = await ask(app, url, {}, env);
    return [
      status,
      ...["X-Request-Id", "X-Content-Type-Options", "Cache-Control", "Strict-Transport-Security"].map(
        (name) => headers.get(name),
      ),
    ];
  };

  it("has an id and is not kept, unless it says itself", async () => {
    expect(await headersOf("/", bindings)).toEqual([200, "request-1", "nosniff", "no-store", null]);
    expect(await headersOf("/kept", bindings)).toEqual([200, "own", "nosniff", "max-age=9", null]);
    expect(await headersOf("https://berth.example/", secure)).toEqual([
      200,
      "request-1",
      "nosniff",
      "no-store",
      "max-age=63072000",
    ]);
  });

  it("has both where its own headers cannot be changed", async () => {
    expect(() => Response.redirect(elsewhere).headers.set("A", "b")).toThrow(TypeError);
    expect(await headersOf("/led", bindings)).toEqual([302, "request-1", "nosniff", "no-store", null]);
    expect((await ask(app, "/led")).headers.get("Location")).toBe(elsewhere);
  });

  it("says when it was given", async () => {
    const before = Date.now() - 1000;
    const { headers } = await ask(app, "/");
    const saidMs = Date.parse(headers.get("Date") ?? "");
    expect(saidMs > before && saidMs <= Date.now()).toBe(true);
  });

  it("that begins a WebSocket is left as it is", async () => {
    const none = [101, null, null, null, null];
    expect(await headersOf("/socket", bindings)).toEqual(none);
    expect(await headersOf("https://berth.example/socket", secure)).toEqual(none);
  });

  it("by plain http is a redirect for what reads, of HEAD as well", async () => {
    const plain = (method: string) =>
      ask(app, "http://berth.example/?a=1", { method, redirect: "manual" }, secure);
    for (const method of ["GET", "HEAD"]) {
      const { status, headers } = await plain(method);
      expect([status, headers.get("Location")]).toEqual([301, "https://berth.example/?a=1"]);
    }
    const refused = await plain("DELETE");
    expect([refused.status, await refused.json()]).toEqual([
      403,
      { error: "forbidden", reason: "This service is available over https only." },
    ]);
  });
});

describe("a refusal", () => {
  const app = made()
    .use((c, next) => {
      c.set("requestId", "request-1");
      return next();
    })
    .get("/app/:code", (c) => {
      throw new AppError(c.req.param("code") as "not_found", { retryAfterSeconds: 7, reason: "Because." });
    })
    .get("/soon", () => {
      throw new AppError("rate_limited");
    })
    .get("/http/:status", (c) => {
      throw new HTTPException(Number(c.req.param("status")) as 400);
    })
    .get("/broken", () => {
      throw new Error("gone");
    })
    .use("/as-long/*", (_c, next) => next())
    .get("/as-long/x", () => {
      throw new Error("gone");
    })
    .use("*", (_c, next) => next());
  const refusal = async (path: string, accept = "*/*") => {
    const response = await ask(app, path, { headers: { Accept: accept } });
    const { status, headers } = response;
    const type = headers.get("Content-Type")?.split(";")[0];
    return { status, headers, type, text: await response.text() };
  };

  it("is a page for browsers, and JSON for whoever calls an interface or asks for none", async () => {
    const page = "text/html,application/xhtml+xml";
    for (const path of ["/nowhere", "/apis", "/agents/x", "/x/api/v1"])
      expect([path, (await refusal(path, page)).type]).toEqual([path, "text/html"]);
    for (const path of ["/api", "/api/v1/x", "/mcp", "/webhooks/x", "/agent/x", "/setup", "/health"])
      expect([path, (await refusal(path, page)).type]).toEqual([path, "application/json"]);
    expect((await refusal("/nowhere")).type).toBe("application/json");
    expect((await refusal("/nowhere", "")).type).toBe("application/json");
  });

  it("says how to sign in, or when to come back", async () => {
    const unauthorized = await refusal("/app/unauthorized");
    expect([unauthorized.status, unauthorized.headers.get("WWW-Authenticate")]).toEqual([401, "Bearer"]);
    const limited = await refusal("/app/rate_limited");
    expect([limited.status, limited.headers.get("Retry-After"), limited.text]).toEqual([
      429,
      "7",
      '{"error":"rate_limited"}',
    ]);
    expect((await refusal("/soon")).headers.get("Retry-After")).toBeNull();
    const other = await refusal("/app/conflict");
    expect([other.headers.get("WWW-Authenticate"), other.headers.get("Retry-After")]).toEqual([null, null]);
    expect(JSON.parse(other.text)).toMatchObject({ reason: "Because." });
  });

  it("of what cannot be read is the client's, and any other error is ours, with an id and in the log", async () => {
    const said = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const unreadable = await refusal("/http/400");
    expect([unreadable.status, JSON.parse(unreadable.text)]).toEqual([
      400,
      { error: "invalid_request", issues: [{ path: "", message: "The body is not valid JSON" }] },
    ]);
    expect(said).not.toHaveBeenCalled();
    for (const path of ["/http/403", "/broken", "/as-long/x"]) {
      const { status, text } = await refusal(path);
      expect([status, JSON.parse(text)]).toEqual([500, { error: "server_error", requestId: "request-1" }]);
    }
    const about = (route: string) =>
      expect.objectContaining({ requestId: "request-1", method: "GET", route });
    expect(said.mock.calls.map(([line]) => JSON.parse(String(line)) as object)).toEqual([
      about("/http/:status"),
      about("/broken"),
      about("/as-long/x"),
    ]);
  });
});

describe("a page", () => {
  const app = made()
    .post("/do", (c) => {
      say(c, { tone: "good", text: "It is done", secret: "sk_secret" });
      return c.redirect("/", 303);
    })
    .use(preparePage)
    .get("/brand", (c) => c.json([c.get("brand")?.name ?? null, c.get("signUp") ?? null]))
    .get("/offers", (c) => c.json(offersSignUp(c)))
    .get("/assets", (c) => c.json(c.get("assets") ?? null))
    .get("/data", (c) => c.json({ said: c.get("flash")?.text ?? null }))
    .get("/leads", (c) => {
      c.set("leadsToPlain", true);
      return c.html(c.get("flash")?.text ?? "nothing");
    })
    .all("/", (c) => {
      const { text, secret } = c.get("flash") ?? { text: "nothing" };
      return c.html(`${text} ${secret ?? ""}`.trim());
    });
  const read = async (path: string, cookie?: string, method = "GET") => {
    const response = await ask(app, path, {
      method,
      ...(cookie !== undefined && { headers: { Cookie: cookie } }),
    });
    return { text: await response.text(), set: response.headers.getSetCookie() };
  };
  const saidAs = async (name = "berth_said") => {
    const [set = ""] = (await ask(app, "/do", { method: "POST" })).headers.getSetCookie();
    return { set, cookie: (set.split(";")[0] ?? "").replace("berth_said", name) };
  };

  it("says once what the form before did, which nobody else reads or writes", async () => {
    const { set, cookie } = await saidAs();
    expect(set).toMatch(
      /^berth_said=(?=.*; Max-Age=60)(?=.*; Path=\/(;|$))(?=.*; HttpOnly)(?=.*; SameSite=Lax)/,
    );
    expect(set).not.toMatch(/Secure|done|sk_secret/);
    const shown = await read("/", cookie);
    expect(shown).toEqual({
      text: "It is done sk_secret",
      set: [expect.stringMatching(/^berth_said=;(?=.* Max-Age=0)(?=.* Path=\/)/)],
    });
    expect(await read("/")).toEqual({ text: "nothing", set: [] });
    expect(await read("/", "berth_said=forged")).toEqual({ text: "nothing", set: [] });
  });

  it("says by https only what no tenant's site below the same domain can have set", async () => {
    const env = { ...bindings, SITE_URL: "https://berth.example", WEBHOOK_HOST: "https://berth.example" };
    const [set = ""] = (await ask(app, "/do", { method: "POST" }, env)).headers.getSetCookie();
    expect(set).toMatch(/^__Host-berth_said=[^;]+;(?=.*; Path=\/(;|$))(?=.*; Secure)(?!.*Domain)/);
    const own = set.split(";")[0] ?? "";
    const shown = async (path: string, Cookie: string) =>
      (await ask(app, path, { headers: { Cookie } }, env)).text();
    expect(await shown("/", own.replace("__Host-", ""))).toBe("nothing");
    expect(await shown("/?plain=1", own.replace("__Host-berth_said", "berth_said_plain"))).toBe("nothing");
    expect(await shown("/", own)).toBe("It is done sk_secret");
  });

  it("has the installation's name, the names of its files, and knows whether one may sign up", async () => {
    expect((await read("/brand")).text).toBe('["Berth","open"]');
    expect((await read("/assets")).text).toMatch(/^\{.*\}$/);
    const closed = { ...bindings, SIGN_UP: "closed" };
    for (const [env, offers] of [
      [bindings, true],
      [closed, false],
    ] as const)
      expect(await (await ask(app, "/offers", {}, env)).json()).toBe(offers);
  });

  it("is shown without a database too, with what the configuration says, and that is in the log", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const DB = crashingDatabase(bindings.DB, { roundTrip: 0, when: "before" });
    const shown = async (path: string, SIGN_UP: string) =>
      (await ask(app, path, {}, { ...bindings, DB, SIGN_UP })).json();
    expect(await shown("/brand", "open")).toEqual([null, null]);
    expect([await shown("/offers", "open"), await shown("/offers", "closed")]).toEqual([true, false]);
    expect(log.mock.calls.map(([line]) => JSON.parse(String(line)) as object)).toEqual(
      Array.from({ length: 3 }, () => expect.objectContaining({ page: "brand" })),
    );
  });

  it("of which a browser asks ahead says nothing yet, and none of those is kept after a form", async () => {
    const { cookie } = await saidAs();
    const answered = async (path: string, method: string, purpose?: string) => {
      const headers = { Cookie: cookie, ...(purpose !== undefined && { "Sec-Purpose": purpose }) };
      const response = await ask(app, path, { method, headers });
      const [cleared, rules] = ["Clear-Site-Data", "Speculation-Rules"].map((name) =>
        response.headers.get(name),
      );
      return { text: await response.text(), cleared, rules, set: response.headers.getSetCookie().length };
    };
    const rules = `"${prefetchRulesPath}"`;
    for (const purpose of ["prefetch", "prefetch;prerender"])
      expect(await answered("/", "GET", purpose)).toEqual({ text: "nothing", cleared: null, rules, set: 0 });
    for (const purpose of [undefined, "other", "other;prefetch"])
      expect(await answered("/", "GET", purpose)).toMatchObject({ text: "It is done sk_secret", set: 1 });
    expect(await answered("/", "POST")).toEqual({
      text: "nothing",
      cleared: '"prefetchCache"',
      rules,
      set: 0,
    });
    expect(await answered("/data", "GET")).toMatchObject({ cleared: null, rules: null, set: 0 });
  });

  it("is where it is said: no form and no data takes it away", async () => {
    const { cookie } = await saidAs();
    expect(await read("/", cookie, "POST")).toEqual({ text: "nothing", set: [] });
    expect((await read("/data", cookie)).set).toEqual([]);
  });

  it("says it once more to browsers that it leads to itself without a script, for ten seconds", async () => {
    const { cookie } = await saidAs();
    const led = await read("/leads", cookie);
    expect(led.set).toEqual([
      expect.stringMatching(/^berth_said=;.*Max-Age=0/),
      expect.stringMatching(/^berth_said_plain=[^;]+;(?=.*Max-Age=10)(?=.*HttpOnly)/),
    ]);
    const plain = (await saidAs("berth_said_plain")).cookie;
    expect(await read("/", plain)).toEqual({ text: "nothing", set: [] });
    expect(await read("/?plain=0", plain)).toEqual({ text: "nothing", set: [] });
    expect(await read("/?plain=1", plain)).toEqual({
      text: "It is done sk_secret",
      set: [
        expect.stringMatching(/^berth_said=;.*Max-Age=0/),
        expect.stringMatching(/^berth_said_plain=;.*Max-Age=0/),
      ],
    });
    expect((await read("/?plain=1", cookie)).set).toHaveLength(2);
  });

  it("of somebody who is to sign in leads there, and back to what can be asked for again", async () => {
    const pages = made().all("*", (c) => toSignIn(c));
    const to = async (path: string, method = "GET") => {
      const { status, headers } = await ask(pages, path, { method, redirect: "manual" });
      return [status, headers.get("Location")];
    };
    expect(await to("/")).toEqual([303, "/sign-in"]);
    expect(await to("/?a=1")).toEqual([303, "/sign-in"]);
    expect(await to("/sites/1?a=b&c")).toEqual([303, "/sign-in?next=%2Fsites%2F1%3Fa%3Db%26c"]);
    expect(await to("/sites/1", "POST")).toEqual([303, "/sign-in"]);
  });
});

const dayMs = 86_400_000;
const sessionOf = async (key: string, days: number) =>
  newSession(await ownerOf(key), { expires_at: Date.now() + days * dayMs });

describe("a browser's session", () => {
  const ownAccount = async (headers: Record<string, string>) => {
    const response = await call("/api/v1/account", { headers });
    const { id } = await response.json<{ id?: string }>();
    return { status: response.status, id, set: response.headers.getSetCookie() };
  };

  it("is the account's, is told once a day that it goes on, and is nothing without our signature or past its end", async () => {
    const key = await account();
    const id = await ownerOf(key);
    const [fresh, used, over] = [
      await sessionOf(key, 29.1),
      await sessionOf(key, 28.9),
      await sessionOf(key, -0.1),
    ];
    expect(await ownAccount({ Cookie: fresh.cookie })).toEqual({ status: 200, id, set: [] });
    const extended = await ownAccount({ Cookie: used.cookie });
    expect(extended).toMatchObject({
      status: 200,
      id,
      set: [
        expect.stringMatching(
          /^berth_session=(?=.*; Max-Age=2592000)(?=.*; Path=\/(;|$))(?=.*; HttpOnly)(?=.*; SameSite=Lax)(?!.*Secure)/,
        ),
      ],
    });
    expect(extended.set[0]).toContain(used.cookie);
    const daysLeft = async ({ token }: { token: string }) => {
      const [row] = await rows<{ expires_at: number }>(
        "SELECT expires_at FROM sessions WHERE token_hash = ?",
        sha256Hex(token),
      );
      return ((row?.expires_at ?? 0) - Date.now()) / dayMs;
    };
    await vi.waitFor(async () => expect(await daysLeft(used)).toBeCloseTo(30, 2));
    expect(await daysLeft(fresh)).toBeCloseTo(29.1, 2);
    const unknown = await signedCookie(uniqueName("token"));
    const unsigned = `berth_session=${fresh.token}.${"A".repeat(43)}%3D`;
    const none = [
      {},
      { Cookie: over.cookie },
      { Cookie: unknown },
      { Cookie: unsigned },
      { Cookie: "berth_session=" },
    ];
    for (const headers of none) {
      expect(await ownAccount(headers)).toMatchObject({ status: 401, set: [] });
      const page = await call("/account", { headers, redirect: "manual" });
      expect([page.status, page.headers.get("Location")]).toEqual([303, "/sign-in?next=%2Faccount"]);
    }
  });

  it("goes on for thirty days more as soon as less than 29 are left", async () => {
    const { token, cookie } = await sessionOf(await account(), 29);
    const app = made().get("/", async (c) => c.json((await sessionActor(c)) !== null));
    const [row] = await rows<{ expires_at: number }>(
      "SELECT expires_at FROM sessions WHERE token_hash = ?",
      sha256Hex(token),
    );
    for (const [passedMs, told] of [
      [0, 0],
      [1, 1],
    ] as const) {
      vi.useFakeTimers({ toFake: ["Date"], now: (row?.expires_at ?? 0) - 29 * dayMs + passedMs });
      const response = await ask(app, "/", { headers: { Cookie: cookie } });
      expect([await response.json(), response.headers.getSetCookie().length]).toEqual([true, told]);
    }
  });

  it("that has ended is looked up once and counted against its address, and 10,000 of them at most are remembered", async () => {
    const app = made().get("/", async (c) => c.json((await sessionActor(c)) === null));
    const lookUps = vi.spyOn(bindings.DB, "prepare");
    const { noted, limits } = notedLimits();
    const env = { ...bindings, ...limits };
    const asked = async (cookie: string, address: string) => {
      const [queries, counted] = [lookUps.mock.calls.length, noted.length];
      const headers = { Cookie: cookie, "CF-Connecting-IP": address };
      expect(await (await ask(app, "/", { headers }, env)).json()).toBe(true);
      return [lookUps.mock.calls.length - queries, noted.slice(counted)];
    };
    const [first, second, third] = [uniqueName("token"), uniqueName("token"), uniqueName("token")];
    const cookie = await signedCookie(first);
    expect(await asked(cookie, "2001:db8::1")).toEqual([1, ["address:2001:db8:0:0::/64"]]);
    expect(await asked(cookie, "192.0.2.1")).toEqual([0, []]);
    const remembering = (count: number) =>
      vi.spyOn(Set.prototype, "size", "get").mockImplementation(function (this: Set<unknown>) {
        return this.has(first) ? count : [...this].length;
      });
    remembering(10_000);
    for (let times = 0; times < 2; times++)
      expect(await asked(await signedCookie(second), "192.0.2.1")).toEqual([1, ["address:192.0.2.1"]]);
    remembering(9999);
    expect((await asked(await signedCookie(third), "192.0.2.1"))[0]).toBe(1);
    expect((await asked(await signedCookie(third), "192.0.2.1"))[0]).toBe(0);
  });

  it("opens the pages of its account, counts against it, and changes something from a page of ours only", async () => {
    const key = await account();
    const id = await ownerOf(key);
    const { cookie } = await sessionOf(key, 29.5);
    const { noted, limits } = notedLimits();
    const app = made()
      .use("/page", signedIn)
      .use("/api", authenticate)
      .all("*", (c) => c.json(c.var.ctx.actor));
    const asked = async (path: string, method: string, headers: Record<string, string> = {}) => {
      noted.length = 0;
      const env = { ...bindings, ...limits };
      const response = await ask(app, path, { method, headers, redirect: "manual" }, env);
      const { accountId, type } = await response.json<{ accountId?: string; type?: string }>().catch(() => ({
        accountId: undefined,
        type: undefined,
      }));
      return [response.status, type, accountId, [...noted]];
    };
    const counted = [`session:${id}`];
    for (const path of ["/page", "/api"]) {
      const mine = { Cookie: cookie };
      expect(await asked(path, "GET", mine)).toEqual([200, "session", id, counted]);
      expect(await asked(path, "POST", mine)).toEqual([403, undefined, undefined, counted]);
      expect(await asked(path, "POST", { ...mine, Origin: siteUrl })).toEqual([200, "session", id, counted]);
      expect(await asked(path, "GET")).toEqual([path === "/api" ? 401 : 303, undefined, undefined, []]);
    }
  });

  it("is noted on pages for all by its signature alone", async () => {
    const app = made()
      .use(noteSession)
      .get("/", (c) => c.json(c.get("hasSession") ?? null));
    const noted = async (headers: Record<string, string>) => (await ask(app, "/", { headers })).json();
    expect(await noted({})).toBe(false);
    expect(await noted({ Cookie: `berth_session=token.${"A".repeat(43)}%3D` })).toBe(false);
    expect(await noted({ Cookie: await signedCookie("ended") })).toBe(true);
  });

  it("of an operator shows another account where a cookie says so, and anybody else's does not", async () => {
    const [key, other] = [await account(), await account()];
    const [id, otherId] = [await ownerOf(key), await ownerOf(other)];
    const view = `; berth_view_as=${otherId}`;
    const own = await sessionOf(key, 29.5);
    expect(await ownAccount({ Cookie: own.cookie + view })).toMatchObject({ status: 200, id });
    expect((await ownAccount({ Cookie: own.cookie, "X-Berth-View-As": otherId })).status).toBe(403);
    const operators = await sessionOf(await operator(), 29.5);
    expect(await ownAccount({ Cookie: operators.cookie + view })).toMatchObject({ status: 200, id: otherId });
    const asKey = { Authorization: `Bearer ${await operator()}` };
    const operatorId = await ownerOf(await operator());
    expect(await ownAccount(asKey)).toMatchObject({ status: 200, id: operatorId });
    expect(await ownAccount({ ...asKey, Cookie: view })).toMatchObject({ status: 200, id: operatorId });
    expect(await ownAccount({ ...asKey, "X-Berth-View-As": otherId })).toMatchObject({
      status: 200,
      id: otherId,
    });
  });
});

it("a key is ours, of the scheme Bearer, and alone; anything else is nobody", async () => {
  const key = await account();
  const refused = [
    "",
    key,
    `Basic ${key}`,
    "Bearer",
    "Bearer ",
    `Bearer ${key} more`,
    "Bearer sk_none",
    `Bearer sk_${"A".repeat(50)}`,
  ];
  for (const authorization of refused) {
    const { status, headers } = await call("/api/v1/account", { headers: { Authorization: authorization } });
    expect([authorization, status, headers.get("WWW-Authenticate")]).toEqual([authorization, 401, "Bearer"]);
  }
  for (const authorization of [`Bearer ${key}`, `bearer ${key}`])
    expect((await call("/api/v1/account", { headers: { Authorization: authorization } })).status).toBe(200);
});

describe("whoever comes with a key", () => {
  const app = made()
    .use("/api", authenticate)
    .use("/mcp", authenticateMcp)
    .use("/open", anybody)
    .all("*", (c) => c.json(c.var.ctx.actor));
  const asked = async (guards: object, path: string, authorization?: string, method = "GET") => {
    const { noted, limits } = notedLimits();
    const headers = {
      "CF-Connecting-IP": "2001:db8::1",
      ...(authorization !== undefined && { Authorization: authorization }),
    };
    const response = await ask(app, path, { method, headers }, { ...bindings, ...guards, ...limits });
    const body = await response.json<Record<string, unknown>>();
    const left = ["RateLimit-Policy", "RateLimit", "Retry-After"].map((name) => response.headers.get(name));
    return { status: response.status, body, left, noted };
  };

  it("is its account, and told what is left of its limit", async () => {
    const actor = keyOf();
    const { key, guards } = await guardedKey(actor);
    const left = ['"key";q=60;w=30', '"key";r=59;t=7', null];
    for (const path of ["/api", "/mcp"])
      for (const method of ["GET", "POST"])
        expect(await asked(guards, path, `Bearer ${key}`, method)).toEqual({
          status: 200,
          body: actor,
          left,
          noted: [],
        });
    const address = "2001:db8::1";
    const open = await asked(guards, "/open", `bearer ${key}`);
    expect(open).toEqual({ status: 200, body: { type: "link", address }, left, noted: [] });
    expect(await asked(guards, "/open")).toMatchObject({
      body: { type: "link", address },
      left: [null, null, null],
      noted: ["address:2001:db8:0:0::/64"],
    });
  });

  it("that is none of ours is refused before its guard is asked, and one that its guard does not know after", async () => {
    const { key, asked: hashes, guards } = await guardedKey(null);
    const forged = key.slice(0, -6) + (key.endsWith("AAAAAA") ? "BBBBBB" : "AAAAAA");
    for (const path of ["/api", "/mcp", "/open"]) {
      for (const authorization of [
        "",
        "Bearer",
        "Basic x",
        `Bearer ${key} x`,
        `xBearer ${key}`,
        `Bearer ${forged}`,
      ])
        expect([authorization, await asked(guards, path, authorization)]).toMatchObject([
          authorization,
          { status: 401, left: [null, null, null], noted: [] },
        ]);
      expect(hashes).toEqual([]);
      expect(await asked(guards, path, `Bearer ${key}`)).toMatchObject({
        status: 401,
        left: [null, null, null],
      });
      expect(hashes.splice(0)).toEqual([sha256Hex(key)]);
    }
    expect(await asked(guards, "/mcp")).toMatchObject({ status: 401, noted: [] });
  });

  it("is let in at /mcp alone with a key that was made for it", async () => {
    const { key, guards } = await guardedKey(keyOf({ forMcp: true }));
    const statuses = ["/api", "/mcp", "/open"].map(
      async (path) => (await asked(guards, path, `Bearer ${key}`)).status,
    );
    expect(await Promise.all(statuses)).toEqual([401, 200, 401]);
  });

  it("comes back later where the limit is used up, and is told why where its account is suspended", async () => {
    const used = await guardedKey(keyOf(), { admitted: false, left: 0 });
    const suspended = await guardedKey(keyOf({ suspendedFor: "Spam." }));
    for (const path of ["/api", "/mcp", "/open"]) {
      expect(await asked(used.guards, path, `Bearer ${used.key}`)).toMatchObject({
        status: 429,
        body: { error: "rate_limited" },
        left: ['"key";q=60;w=30', '"key";r=0;t=7', "7"],
      });
      expect(await asked(suspended.guards, path, `Bearer ${suspended.key}`)).toMatchObject({
        status: 403,
        body: { reason: expect.stringContaining("Spam.") },
      });
    }
  });
});

it("a request whose address is the credential is nobody's, and a timer's is the system's", async () => {
  const app = made()
    .use("/link", actAs("link"))
    .use("/system", actAs("system"))
    .get("*", (c) => c.json(c.var.ctx.actor));
  for (const type of ["link", "system"]) expect(await (await ask(app, `/${type}`)).json()).toEqual({ type });
});

it("what a path for signing in does not name, or not with this value, is refused, and a path that is not described is not judged", async () => {
  const app = made()
    .use(knownAuthQuery)
    .all("*", (c) => c.text(""));
  const asked = async (method: string, path: string) => {
    const response = await ask(app, `/api/auth${path}`, { method });
    return [response.status, response.status === 400 ? await response.json() : null];
  };
  const refused = { error: "invalid_request", issues: [{ path: "unheardOf", message: "unknown parameter" }] };
  expect(await asked("GET", "/get-session?disableRefresh=true")).toEqual([200, null]);
  expect(await asked("GET", "/get-session?unheardOf=1")).toEqual([400, refused]);
  expect(await asked("POST", "/sign-in/email")).toEqual([200, null]);
  expect(await asked("POST", "/sign-in/email?unheardOf=1")).toEqual([400, refused]);
  expect(await asked("GET", "/sign-in/email?unheardOf=1")).toEqual([200, null]);
  expect(await asked("POST", "/elsewhere?unheardOf=1")).toEqual([200, null]);
  expect(await asked("POST", "/reset-password?keepKeys=1")).toEqual([200, null]);
  for (const query of ["keepKeys=true", "keepKeys=", "keepKeys=1&keepKeys=1"]) {
    const [status, body] = await asked("POST", `/reset-password?${query}`);
    expect([query, status, body]).toEqual([
      query,
      400,
      { error: "invalid_request", issues: [{ path: "keepKeys", message: expect.any(String) }] },
    ]);
  }
});

it("a parameter that an operation does not name is refused, where it names others and where it names none", async () => {
  const key = await account();
  for (const path of ["/account", "/sites?limit=1", "/packs"]) {
    expect((await api(key, "GET", path)).status).toBe(200);
    const { status, body } = await api(key, "GET", `${path}${path.includes("?") ? "&" : "?"}unheardOf=1`);
    expect([path, status, body["issues"]]).toEqual([
      path,
      400,
      [{ path: "unheardOf", message: "unknown parameter" }],
    ]);
  }
});

it("a device is known for the account that has signed in on it, with each of our keys, and no script reads it", async () => {
  const [config, rotated] = [
    bindings,
    { ...bindings, SECRET_KEY: "C".repeat(43), SECRET_KEYS_OLD: "A".repeat(43) },
  ];
  const app = made()
    .get("/made", (c) => c.text(knownDeviceCookie(c, "ada@example.com")))
    .get("/known/:email", (c) => c.json(isKnownDevice(c, c.req.param("email"))));
  const set = await (await ask(app, "/made", {}, config)).text();
  expect(set).toMatch(
    /^berth_device=[\w-]{43};(?=.* Max-Age=31536000)(?=.* Path=\/(;|$))(?=.* HttpOnly)(?=.* SameSite=Lax)(?!.* Secure)/,
  );
  const [cookie = ""] = set.split(";");
  const known = async (email: string, headers: Record<string, string>, env: object = config) =>
    (await ask(app, `/known/${email}`, { headers }, env)).json();
  expect(await known("ada@example.com", { Cookie: cookie })).toBe(true);
  expect(await known("ada@example.com", { Cookie: cookie }, rotated)).toBe(true);
  expect(await known("eve@example.com", { Cookie: cookie })).toBe(false);
  for (const wrong of ["", "berth_device=", `${cookie}AAAA`, "berth_device=AAAA"])
    expect([wrong, await known("ada@example.com", wrong === "" ? {} : { Cookie: wrong })]).toEqual([
      wrong,
      false,
    ]);
});

it("a session's cookie is signed by one of our keys, whole", async () => {
  const token = "token.with.dots";
  const value = decodeURIComponent((await signedCookie(token)).split("=")[1] ?? "");
  const verified = (cookie: string, env: object = bindings) => signedSessionToken(configOf(env), cookie);
  expect(await verified(value)).toBe(token);
  const { SECRET_KEY } = bindings as unknown as { SECRET_KEY: string };
  expect(
    await verified(value, { ...bindings, SECRET_KEY: "C".repeat(43), SECRET_KEYS_OLD: SECRET_KEY }),
  ).toBe(token);
  expect(await verified(value, { ...bindings, SECRET_KEY: "C".repeat(43) })).toBeNull();
  for (const wrong of ["", ".", token, value.slice(1), value.replace("dots", "dot"), value.slice(0, -8)])
    expect([wrong, await verified(wrong)]).toEqual([wrong, null]);
  expect([isSecure, cookiePrefix, sessionCookie].map((of) => of(configOf(bindings)))).toEqual([
    false,
    "berth",
    "berth_session",
  ]);
  const secure = configOf({
    ...bindings,
    SITE_URL: "https://berth.example",
    WEBHOOK_HOST: "https://berth.example",
  });
  expect([isSecure, cookiePrefix, sessionCookie].map((of) => of(secure))).toEqual([
    true,
    "__Host-berth",
    "__Host-berth_session",
  ]);
  const gitHub = (changes: object) => signsInWithGitHub(configOf({ ...bindings, ...changes }));
  expect([gitHub({}), gitHub({ GITHUB_CLIENT_ID: undefined, GITHUB_CLIENT_SECRET: undefined })]).toEqual([
    true,
    false,
  ]);
});

it("what a request leaves to be done is waited for", async () => {
  const waited: Promise<unknown>[] = [];
  const app = made().get("/", (c) => {
    contextFor(c, { type: "link" }).defer(Promise.resolve("done"));
    return c.text("");
  });
  await app.fetch(new Request(siteUrl), bindings, {
    ...execution,
    waitUntil: (one) => void waited.push(one),
  });
  expect(waited).toHaveLength(1);
});

it("an operator's view of an account is this browser's for half an hour, and no script reads it", async () => {
  const app = made()
    .get("/start", (c) => {
      startViewing(c, "acc_1");
      return c.text("");
    })
    .get("/end", (c) => {
      endViewing(c);
      return c.text("");
    });
  const set = async (path: string, env: object = bindings) =>
    (await ask(app, path, {}, env)).headers.getSetCookie();
  expect(await set("/start")).toEqual([
    expect.stringMatching(
      /^berth_view_as=acc_1;(?=.*Max-Age=1800)(?=.*Path=\/(;|$))(?=.*HttpOnly)(?=.*SameSite=Lax)(?!.*Secure)/,
    ),
  ]);
  expect(await set("/end")).toEqual([
    expect.stringMatching(/^berth_view_as=;(?=.*Max-Age=0)(?=.*Path=\/(;|$))/),
  ]);
  const secure = { ...bindings, SITE_URL: "https://berth.example", WEBHOOK_HOST: "https://berth.example" };
  expect(await set("/end", secure)).toEqual([
    expect.stringMatching(/^__Host-berth_view_as=;(?=.*Max-Age=0)(?=.*Secure)/),
  ]);
});

it("what changes something by a cookie comes from a page of ours", async () => {
  const app = made().all("/", (c) => {
    requireSameOrigin(c);
    return c.text("");
  });
  const status = async (method: string, origin?: string) =>
    (await ask(app, "/", { method, ...(origin !== undefined && { headers: { Origin: origin } }) })).status;
  for (const method of ["GET", "HEAD"]) expect(await status(method)).toBe(200);
  for (const method of ["POST", "PUT", "PATCH", "DELETE"])
    expect([
      await status(method),
      await status(method, "null"),
      await status(method, "https://evil.example"),
      await status(method, siteUrl),
    ]).toEqual([403, 403, 403, 200]);
});

it("a key's answers say how much of its limit is left", async () => {
  const key = await account();
  for (const left of [59, 58]) {
    const { headers } = await api(key, "GET", "/sites?limit=1");
    expect(headers.get("RateLimit-Policy")).toBe('"key";q=60;w=60');
    expect(headers.get("RateLimit")).toMatch(new RegExp(`^"key";r=${left};t=\\d+$`));
  }
});

describe("who may call an operation", () => {
  const of = (actor: object) => ({ actor }) as unknown as Ctx;
  const owner = { accountId: "acc_1", plan: "free", suspendedFor: null };
  const actors = {
    link: { type: "link" },
    system: { type: "system" },
    key: { type: "key", role: "user", ...owner },
    "operator's key": { type: "key", role: "operator", ...owner },
    session: { type: "session", role: "user", ...owner },
    "operator's session": { type: "session", role: "operator", ...owner },
    assistant: { type: "assistant", ...owner, role: "operator" },
    viewer: { type: "viewer", ...owner },
    "suspended key": { type: "key", role: "user", ...owner, suspendedFor: "Spam." },
  };
  const verdict = (operation: object, actor: object) => {
    try {
      requireAccess(of(actor), operation as Operation);
      return "yes";
    } catch (error) {
      return (error as AppError).code;
    }
  };
  const verdicts = (operation: object) =>
    Object.fromEntries(Object.entries(actors).map(([name, actor]) => [name, verdict(operation, actor)]));
  const nobody = { link: "unauthorized", system: "unauthorized" };

  it("depends on what it asks for, and on who asks", () => {
    expect(new Set(Object.values(verdicts({ access: "none", method: "post" })))).toEqual(new Set(["yes"]));
    expect(verdicts({ access: "account", method: "get" })).toEqual({
      ...Object.fromEntries(Object.keys(actors).map((name) => [name, "yes"])),
      ...nobody,
    });
    expect(verdicts({ access: "account", method: "post" })).toEqual({
      ...Object.fromEntries(Object.keys(actors).map((name) => [name, "yes"])),
      ...nobody,
      viewer: "forbidden",
      "suspended key": "forbidden",
    });
    expect(verdicts({ access: "account", method: "get", ownersOnly: true })["viewer"]).toBe("forbidden");
    const bySession = {
      ...nobody,
      key: "forbidden",
      "operator's key": "forbidden",
      session: "yes",
      "operator's session": "yes",
      viewer: "yes",
      "suspended key": "forbidden",
    };
    expect(verdicts({ access: "session", method: "get" })).toEqual({ ...bySession, assistant: "forbidden" });
    expect(verdicts({ access: "session", method: "get", assistant: true })).toEqual({
      ...bySession,
      assistant: "yes",
    });
    expect(verdicts({ access: "operator", method: "get" })).toEqual({
      ...nobody,
      key: "forbidden",
      "operator's key": "yes",
      session: "forbidden",
      "operator's session": "yes",
      assistant: "forbidden",
      viewer: "forbidden",
      "suspended key": "forbidden",
    });
  });

  it("is told why not", () => {
    const why = (act: () => void) => {
      try {
        act();
        return null;
      } catch (error) {
        return (error as AppError).extra["reason"];
      }
    };
    const asViewer = (operation: object) =>
      why(() => requireAccess(of(actors.viewer), operation as Operation));
    expect(asViewer({ access: "account", method: "post" })).toContain("can change nothing");
    expect(asViewer({ access: "account", method: "get", ownersOnly: true })).toContain("owner only");
    expect(why(() => refuseSuspended({ suspendedFor: "Spam." }))).toContain("suspended: Spam. Ask");
    expect(
      [null, undefined].map((suspendedFor) => why(() => refuseSuspended({ suspendedFor } as Suspended))),
    ).toEqual([null, null]);
  });

  it("what changes something is on record: all but what reads, what needs no account, and the assistant's messages", () => {
    const one = (of: object, input: object = {}) =>
      isChange({ method: "post", access: "account", ...of } as unknown as Operation, input);
    expect([one({}), one({ method: "delete" }), one({ method: "get" })]).toEqual([true, true, false]);
    expect([one({ readOnly: true }), one({ access: "none" }), one({ limit: "chat" })]).toEqual([
      false,
      false,
      false,
    ]);
    expect(one({ limit: "keyMade" })).toBe(true);
    const unless = { readsUnless: "write" };
    expect([one(unless), one(unless, { write: true }), one(unless, { write: "yes" })]).toEqual([
      false,
      true,
      false,
    ]);
    expect(
      Object.values<Operation>(operations).filter((each) => each.method === "get" && isChange(each, {})),
    ).toEqual([]);
  });
});
