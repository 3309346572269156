import { expect, it } from "vitest";
import { scryptSync } from "node:crypto";
import type { IngressChange, IngressRules } from "../../protocol/api/ingress.ts";
import type { Site } from "../../protocol/api/sites.ts";
import { account, api, createSite, deployResult, finish, readyAgent, runningSite, site } from "./service.ts";

type Refused = { issues?: { path: string; message: string }[] };
const set = (key: string, id: string, ingress: unknown) =>
  api<Site & Refused>(key, "PATCH", `/sites/${id}`, { settings: { ingress } });

const protection: IngressChange = {
  basicAuth: { username: "team", password: "correct horse" },
  allow: ["203.0.113.0/24", "2001:db8::/32"],
};

it("what the ingress does is merged by setting, shown without the password, and cleared by null", async () => {
  const key = await account();
  const { siteId } = await createSite(key);
  expect(Object.values((await site(key, siteId)).ingress).every((value) => value === null)).toBe(true);
  await set(key, siteId, { ...protection, headers: { "X-A": "1", "X-B": "2" } });
  const { body, status } = await set(key, siteId, {
    headers: { "X-C": "3" },
    maintenance: { message: "Soon" },
  });
  expect([status, body.ingress]).toMatchObject([
    200,
    {
      basicAuth: { username: "team", hasPassword: true },
      allow: protection.allow,
      headers: { "X-C": "3" },
      maintenance: { message: "Soon" },
      redirects: null,
    },
  ]);
  expect(body.ingress.headers).toEqual({ "X-C": "3" });
  expect(JSON.stringify(body)).not.toMatch(/correct horse|scrypt/);
  const cleared = await set(key, siteId, { basicAuth: null, maintenance: null, allow: null });
  expect(cleared.body.ingress).toMatchObject({ basicAuth: null, maintenance: null, allow: null });
  expect((await site(key, siteId)).ingress.headers).toEqual({ "X-C": "3" });
});

it("a change reaches the host at once, without a deployment, and goes with every later one", async () => {
  const key = await account();
  const host = await readyAgent();
  const { siteId } = await runningSite(key, host);
  await set(key, siteId, protection);
  const told = await host.next("job");
  expect(told.job).toMatchObject({
    kind: "site.route",
    args: { siteId, ingress: { allow: protection.allow } },
  });
  const { ingress } = told.job.args as { ingress: IngressRules };
  const [, N, r, p, salt = "", hash = ""] = ingress.basicAuth?.hash.split("$") ?? [];
  const key2 = scryptSync("correct horse", Buffer.from(salt, "base64url"), 32, {
    N: Number(N),
    r: Number(r),
    p: Number(p),
  });
  expect(key2.toString("base64url")).toBe(hash);
  await finish(host, told.job, told.attempt);
  await api(key, "PATCH", `/sites/${siteId}`, { action: "restart" });
  const restart = await host.next("job");
  expect(restart.job).toMatchObject({ kind: "site.restart", args: { run: { ingress } } });
  await finish(host, restart.job, restart.attempt);
  host.close();
});

it("a change waits for no deployment that is under way, which is told when it was sent", async () => {
  const key = await account();
  const host = await readyAgent();
  const { siteId } = await runningSite(key, host);
  await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
  const deploy = await host.next("job");
  const sent = (deploy.job.args as { run: { readAtMs?: number } }).run.readAtMs ?? Number.NaN;
  await set(key, siteId, { maintenance: { message: "Soon" } });
  const told = await host.next("job");
  expect(told.job).toMatchObject({ kind: "site.route", args: { ingress: { maintenance: {} } } });
  expect((told.job.args as { readAtMs?: number }).readAtMs).toBeGreaterThanOrEqual(sent);
  await finish(host, told.job, told.attempt);
  await finish(host, deploy.job, deploy.attempt, deployResult);
  expect(await site(key, siteId)).toMatchObject({ status: "RUNNING", ingress: { maintenance: {} } });
  host.close();
});

it.each<[string, unknown]>([
  ["nothing", {}],
  ["an unknown setting", { proxy: true }],
  ["a redirect to another scheme", { redirects: [{ from: "/a", to: "javascript:alert(1)" }] }],
  ["a redirect to another site without scheme", { redirects: [{ from: "/a", to: "//evil.example" }] }],
  ["a redirect that browsers take for another site", { redirects: [{ from: "/a", to: "/\\evil.example" }] }],
  ["credentials in a redirect", { redirects: [{ from: "/a", to: "https://a:b@evil.example" }] }],
  ["a line break in a redirect", { redirects: [{ from: "/a", to: "/b\r\nSet-Cookie: a=b" }] }],
  ["another code", { redirects: [{ from: "/a", to: "/b", code: 200 }] }],
  ["a circle", { redirects: [{ from: "/a", match: "prefix", to: "/a/b" }] }],
  ["a rewrite to another site", { rewrites: [{ from: "/a", to: "https://evil.example" }] }],
  ["a name that is not the site's", { primaryDomain: "evil.example" }],
  ["https where there is none", { httpsOnly: true }],
  ["HSTS where there is no https", { hsts: { maxAgeSeconds: 60 } }],
  ["a header of the connection", { headers: { "Transfer-Encoding": "chunked" } }],
  ["a header of the ingress's own", { headers: { "Set-Cookie": "a=b" } }],
  ["a header's name with a colon", { headers: { "X-A: b\r\nX-C": "d" } }],
  ["a line break in a header", { headers: { "X-A": "b\r\nX-C: d" } }],
  ["one header twice", { headers: { "X-A": "1", "x-a": "2" } }],
  [
    "too many headers",
    { headers: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`X-${n}`, "1"])) },
  ],
  ["an address that is none", { allow: ["203.0.113.300"] }],
  ["a network with bits of a host", { allow: ["203.0.113.1/24"] }],
  ["a user with a colon", { basicAuth: { username: "a:b", password: "correct horse" } }],
  ["a short password", { basicAuth: { username: "a", password: "short" } }],
  ["another limit", { maxBodyMb: 3 }],
])("%s is refused, and nothing changes", async (_, ingress) => {
  const key = await account();
  const { siteId } = await createSite(key);
  const before = await site(key, siteId);
  const { status, body } = await set(key, siteId, ingress);
  expect([status, body.issues?.[0]?.path.startsWith("settings")]).toEqual([400, true]);
  expect(await site(key, siteId)).toEqual(before);
});
