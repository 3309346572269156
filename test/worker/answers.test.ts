import { beforeAll, describe, expect, it } from "vitest";
import { operations, type Operation } from "../../protocol/api/operations.ts";
import {
  account,
  api,
  bindings,
  call,
  createSite,
  operator,
  operatorCookie,
  readyAgent,
  runningSite,
  siteUrl,
} from "./service.ts";
import { app } from "../../worker/app.ts";

const all = Object.entries(operations as Record<string, Operation>).filter(([, { at }]) => at !== "site");
const headersOf = (own: string) => ({ Cookie: own, Origin: siteUrl });

let own: string;
beforeAll(async () => {
  own = await operatorCookie();
});

const ask = async ({ method, path, at }: Operation, search: string) => {
  const address = (at === undefined ? "/api/v1" : "") + path.replaceAll(/\{\w+\}/g, "none");
  const response = await call(address + search, { method: method.toUpperCase(), headers: headersOf(own) });
  return { status: response.status, body: await response.json<{ issues?: { path: string }[] }>() };
};

describe.each(all)("%s", (_, operation) => {
  it("refuses a parameter that it does not name", async () => {
    const { status, body } = await ask(operation, "?unheardOf=1");
    expect([status, body.issues]).toEqual([400, [expect.objectContaining({ path: "unheardOf" })]]);
  });
});

const numbersOf = ({ query }: Operation) =>
  Object.keys(query?.shape ?? {}).filter((name) => query?.shape[name]?.safeParse("7").data === 7);

describe.each(all.filter(([, operation]) => numbersOf(operation).length > 0))("%s", (_, operation) => {
  it("takes numbers in plain decimal only", async () => {
    for (const name of numbersOf(operation))
      for (const value of ["0x10", "1e1", "%201", "1.0", "+1", "01", "-1", "", `1&${name}=2`]) {
        const { status, body } = await ask(operation, `?${name}=${value}`);
        // Beside what else is missing.
        const isNamed = body.issues?.some(({ path }) => path === name);
        expect([name, value, status, isNamed]).toEqual([name, value, 400, true]);
      }
  });
});

describe("a key", () => {
  const open = ["/credits/packages", "/packs", "/openapi.json", "/auth/device-poll?code=dev_none"];

  it("is counted also where none is needed, and used up it is refused there too", async () => {
    const key = await account();
    const left = async (path: string) => {
      const { status, headers } = await api(key, "GET", path);
      return [status, /r=(\d+);/.exec(headers.get("RateLimit") ?? "")?.[1]];
    };
    for (const [at, path] of open.entries())
      expect([path, (await left(path))[1]]).toEqual([path, String(59 - at)]);
    for (let times = open.length; times < 60; times++) await api(key, "GET", "/packs?limit=1");
    for (const path of open) {
      const { status, headers, body } = await api(key, "GET", path);
      expect([path, status, body]).toEqual([path, 429, { error: "rate_limited" }]);
      expect(headers.get("Retry-After")).toMatch(/^[1-9]\d?$/);
      expect((await api(null, "GET", path)).status).not.toBe(429);
    }
  });

  it("that does not work is refused also where none is needed, and so is anything else in its place", async () => {
    for (const path of open)
      for (const wrong of ["sk_nothing", `sk_${"A".repeat(50)}`])
        expect([path, (await api(wrong, "GET", path)).status]).toEqual([path, 401]);
  });
});

it("an operation that the service does not have is named as such, and not told as something that the account does not have", async () => {
  const { status, body } = await api<{ error: string; reason: string }>(
    await account(),
    "POST",
    "/sites/site_1/unheard-of",
  );
  expect([status, body.error]).toEqual([404, "Not found"]);
  expect(body.reason).toMatch(
    /^This service has no operation POST \/api\/v1\/sites\/site_1\/unheard-of\. .*version/,
  );
});

describe("an answer of the API", () => {
  const expectSafe = (from: string, { headers }: Response) => {
    expect([from, headers.get("X-Content-Type-Options"), headers.get("Cache-Control")]).toEqual([
      from,
      "nosniff",
      "no-store",
    ]);
    // By it, a program finds out that its own clock is wrong.
    expect([from, Date.now() - Date.parse(headers.get("Date") ?? "")]).toEqual([
      from,
      expect.toSatisfy((ms: number) => Math.abs(ms) < 60_000),
    ]);
  };

  it("is kept nowhere, is what it says it is and says the time, whether it is one, a refusal, a stream or a failure", async () => {
    const key = await operator();
    const agent = await readyAgent();
    const { siteId } = await runningSite(key, agent);
    const by = { Authorization: `Bearer ${key}` };
    const { body } = await api<{ latestDeployment: { id: string } }>(key, "GET", `/sites/${siteId}`);
    const { invoiceToken } = await createSite(key);
    for (const path of [
      "/health",
      "/api/v1/packs",
      "/api/v1/openapi.json",
      "/api/v1/sites",
      `/api/v1/sites/${siteId}`,
      `/api/v1/deployments/${body.latestDeployment.id}/logs`,
      `/api/v1/deployments/${body.latestDeployment.id}/logs?follow=1`,
      "/api/v1/sites?limit=0",
      "/api/v1/sites/site_none",
      "/api/v1/nothing",
      "/api/auth/get-session",
      "/api/auth/nothing",
      "/webhooks/nothing",
      "/agent/connect",
      "/backups/bak_none/download",
      "/install",
      "/nothing",
      `/invoice/${invoiceToken}`,
    ]) {
      const response = await call(path, { headers: { ...by, Accept: "application/json" } });
      expectSafe(`${path} ${response.status}`, response);
      await response.body?.cancel();
    }
    expectSafe("401", await call("/api/v1/sites"));
    for (const path of ["/webhooks/deploy/whk_x", "/setup", "/api/v1/sites"])
      expectSafe(path, await call(path, { method: "POST", body: "{" }));
    agent.close();
  });

  it("is so also where everything behind it fails", async () => {
    const broken = new Proxy(
      {},
      {
        get: () => () => {
          throw new Error("gone");
        },
      },
    );
    const response = await app.fetch(new Request(`${siteUrl}/api/v1/packs`), { ...bindings, DB: broken }, {
      waitUntil: () => undefined,
      passThroughOnException: () => undefined,
    } as unknown as ExecutionContext);
    expect(response.status).toBe(500);
    expectSafe("500", response);
  });

  it("about a sign-in that failed is a page of ours, without a word from elsewhere", async () => {
    const sent = await call("/api/auth/error?error=state_mismatch", { redirect: "manual" });
    expect([sent.status, sent.headers.get("Location")]).toEqual([303, "/sign-in?error=1"]);
    const page = await call("/sign-in?error=1");
    expect(page.headers.get("Content-Security-Policy")).toContain("default-src 'none'");
    const text = await page.text();
    expect(text).toContain("Sign-in failed");
    expect(text).not.toContain("better-auth");
    const back = await call("/api/auth/callback/github?error=access_denied&state=x", { redirect: "manual" });
    expect(back.status).toBe(302);
    expect(back.headers.get("Location")).toMatch(new RegExp(`^${siteUrl}/sign-in\\?`));
  });
});
