import { describe, expect, it } from "vitest";
import { configOf } from "../../worker/config.ts";
import { app } from "../../worker/app.ts";
import { bindings, setupToken } from "./service.ts";

const production = {
  ...bindings,
  SITE_URL: "https://berth.example",
  WEBHOOK_HOST: "https://hooks.berth.example",
};
const send = (url: string, init: RequestInit = {}) =>
  app.fetch(new Request(url, { redirect: "manual", ...init }), production, {
    waitUntil: () => undefined,
    passThroughOnException: () => undefined,
  } as unknown as ExecutionContext);

describe("a setting that is an address", () => {
  const names = [
    "SITE_URL",
    "WEBHOOK_HOST",
    "SITES_ORIGIN",
    "STRIPE_API_HOST",
    "DNS_ENDPOINTS",
    "MAIL_ENDPOINT",
  ];

  it.each(names)("%s is https, or of this machine alone", (name) => {
    const { SITE_URL, SITES_ORIGIN, SECRET_KEY } = bindings as unknown as Record<string, string>;
    const read = (value: string) => configOf({ SITE_URL, SITES_ORIGIN, SECRET_KEY, [name]: value });
    for (const plain of [
      "berth.example",
      "10.0.0.1:8787",
      "127.0.0.1.berth.example",
      "localhost.example",
      "[::2]",
      "0.0.0.0",
    ])
      expect(() => read(`http://${plain}`), plain).toThrow(/use https/);
    for (const good of [
      "https://berth.example",
      "http://127.0.0.1:1",
      "http://localhost:8787",
      "http://a.localhost",
      "http://[::1]:1",
    ])
      expect(() => read(good), good).not.toThrow();
    for (const none of ["ftp://127.0.0.1", "berth.example", "javascript:alert(1)"])
      expect(() => read(none), none).toThrow();
  });
});

describe("in production", () => {
  it("plain http is redirected for GET and refused for everything else, on every host", async () => {
    for (const host of ["berth.example", "hooks.berth.example"]) {
      const read = await send(`http://${host}/api/v1/packs?a=1`);
      expect([read.status, read.headers.get("Location")]).toEqual([301, `https://${host}/api/v1/packs?a=1`]);
      const write = await send(`http://${host}/webhooks/deploy/whk_x`, { method: "POST" });
      expect([write.status, await write.json()]).toEqual([
        403,
        expect.objectContaining({ error: "forbidden" }),
      ]);
    }
  });

  it("https answers and tells browsers to stay there; the loopback address is exempt", async () => {
    const secure = await send("https://berth.example/health");
    expect([secure.status, secure.headers.get("Strict-Transport-Security")]).toEqual([
      200,
      expect.stringMatching(/^max-age=\d{8}/),
    ]);
    for (const host of ["127.0.0.1:8787", "localhost", "[::1]:1"])
      expect((await send(`http://${host}/health`)).status).toBe(200);
    expect((await send("http://127.0.0.1.evil.example/health")).status).toBe(301);
  });

  it("the session's cookie is Secure, HttpOnly and this host's own: no site below the same domain can set another", async () => {
    await send("https://berth.example/setup", {
      method: "POST",
      headers: { Authorization: `Bearer ${setupToken}`, "Content-Type": "application/json" },
      body: JSON.stringify({ email: "operator@example.com", password: "correct horse battery", name: "O" }),
    });
    const signedIn = await send("https://berth.example/sign-in", {
      method: "POST",
      headers: { Origin: "https://berth.example" },
      body: new URLSearchParams({ email: "operator@example.com", password: "correct horse battery" }),
    });
    const cookie = signedIn.headers.getSetCookie().find((one) => one.includes("session")) ?? "";
    expect([signedIn.status, cookie]).toEqual([
      303,
      expect.stringMatching(
        /^__Host-berth_session=(?=.*; Path=\/(?:;|$))(?=.*; HttpOnly)(?=.*; Secure)(?!.*; Domain)/i,
      ),
    ]);
    const page = await send("https://berth.example/", { headers: { Cookie: cookie.split(";")[0] ?? "" } });
    expect(page.status).toBe(200);
  });
});
