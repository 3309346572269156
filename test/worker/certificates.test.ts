import { createPrivateKey, createPublicKey, X509Certificate } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { contextOf } from "../../worker/compose.ts";
import { runDns } from "../../worker/cron.ts";
import type { Ctx } from "../../worker/ctx.ts";
import { awaitedCertificate, issuedCertificates } from "../../worker/jobs/certificates/issued.ts";
import { getDns } from "../../worker/services/dns/get.ts";
import { AcmeAuthority } from "../support/acme-authority/server.ts";
import { CloudflareServer } from "../support/cloudflare/server.ts";
import { bindings, readyAgent } from "./service.ts";

const name = "*.sites.test";
const challenge = "_acme-challenge.sites.test";
const day = 86_400_000;

let cloudflare: CloudflareServer;
let authority: AcmeAuthority;
let ctx: Ctx;
let now: Date;
/** What resolvers on the internet answer; null: none does. */
let resolved: (() => string[]) | null;

const published = () =>
  cloudflare.records.flatMap((one) => (one.name === challenge ? one.content.replaceAll('"', "") : []));

beforeEach(async () => {
  cloudflare = new CloudflareServer();
  authority = new AcmeAuthority();
  authority.lookUp = published;
  resolved = published;
  now = new Date("2026-03-01T00:00:00Z");
  authority.now = now;
  await bindings.DB.batch(
    ["certificates", "acme_accounts", "dns_zones"].map((table) =>
      bindings.DB.prepare(`DELETE FROM ${table}`),
    ),
  );
  ctx = contextOf(
    {
      ...bindings,
      SITES_ORIGIN: "https://sites.test",
      DNS_PROVIDER: "cloudflare",
      CLOUDFLARE_ZONE_ID: cloudflare.zoneId,
      CLOUDFLARE_API_TOKEN: cloudflare.token,
      ACME_DIRECTORY: authority.directoryUrl,
      DNS_ENDPOINTS: "https://resolver.test/query",
    } as typeof bindings,
    { type: "system" },
    (work) => void work,
  );
  Object.defineProperty(ctx, "now", { value: () => now });
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    switch (new URL(request.url).hostname) {
      case "acme.test":
        return authority.fetch(request);
      case "resolver.test":
        if (!resolved) return new Response(null, { status: 503 });
        return Response.json({
          Status: 0,
          Answer: resolved().map((data) => ({ type: 16, data: `"${data}"` })),
        });
      default:
        return cloudflare.fetch(request);
    }
  });
});
afterEach(() => vi.restoreAllMocks());

/** The timer for so many minutes. */
async function minutes(count: number): Promise<void> {
  for (let minute = 0; minute < count; minute++) {
    await runDns(ctx);
    now = new Date(now.getTime() + 60_000);
    authority.now = now;
  }
}

const certificate = async () => (await getDns(ctx)).certificate;

describe("the wildcard certificate of the sites' own names", () => {
  it("is issued within minutes by a TXT record, which is removed afterwards, and its key matches", async () => {
    await minutes(5);
    const [issued] = await issuedCertificates(ctx, "host_0none");
    const leaf = new X509Certificate(issued?.chain ?? "");
    expect(leaf.subjectAltName).toBe(`DNS:${name}`);
    const { x, y } = createPublicKey(createPrivateKey(issued?.key ?? "")).export({ format: "jwk" });
    expect(leaf.publicKey.export({ format: "jwk" })).toMatchObject({ x, y });
    expect(published()).toEqual([]);
    expect(await certificate()).toMatchObject({ name, issuer: "Test Authority", error: null, step: null });
    const { asked } = authority;
    await minutes(5);
    expect(authority.asked).toEqual(asked);
    expect(authority.orders.length).toBe(1);
  });

  it("is stored with its key sealed", async () => {
    await minutes(5);
    const rows = await bindings.DB.prepare("SELECT * FROM certificates, acme_accounts").all();
    expect(JSON.stringify(rows.results)).not.toContain("PRIVATE KEY");
  });

  it("is not asked for before the record is published and a resolver sees it, or two minutes have passed", async () => {
    cloudflare.isAway = true;
    await minutes(3);
    expect(authority.asked).not.toContain("/challenge/0");
    cloudflare.isAway = false;
    resolved = () => [];
    await minutes(3);
    expect(published().length).toBe(1);
    expect(authority.asked).not.toContain("/challenge/0");
    resolved = null;
    await minutes(6);
    expect((await issuedCertificates(ctx, "host_0none")).length).toBe(1);
  });

  it("is renewed after two thirds of its lifetime, and the old one stays while that fails", async () => {
    await minutes(5);
    const [first] = await issuedCertificates(ctx, "host_0none");
    now = new Date(now.getTime() + 59 * day);
    await minutes(1);
    expect(authority.orders.length).toBe(1);
    now = new Date(now.getTime() + 1.1 * day);
    authority.isAway = true;
    await minutes(20);
    expect(await issuedCertificates(ctx, "host_0none")).toEqual([first]);
    expect((await certificate())?.error).toBe("The certificate authority at acme.test could not be reached.");
    authority.isAway = false;
    authority.lookUp = () => [];
    await minutes(40);
    expect(await issuedCertificates(ctx, "host_0none")).toEqual([first]);
    expect((await certificate())?.error).toBe(
      `The certificate authority did not accept the proof: No TXT record found at ${challenge}`,
    );
    // Five minutes, ten, twenty and so on: authorities count failures.
    expect(authority.orders.length).toBeLessThan(5);
    authority.lookUp = published;
    await minutes(120);
    const [second] = await issuedCertificates(ctx, "host_0none");
    expect(second?.chain).not.toBe(first?.chain);
    expect(second?.key).not.toBe(first?.key);
    expect(await certificate()).toMatchObject({ error: null, errorSince: null });
    expect(published()).toEqual([]);
  }, 240_000);

  it.each([
    ["lost", () => authority.loseAccounts()],
    ["deactivated", () => authority.deactivateAccounts()],
  ])(
    "is renewed by a new account when the authority has %s the old one, also amid an order",
    async (_, end) => {
      await minutes(5);
      const [first] = await issuedCertificates(ctx, "host_0none");
      now = new Date(now.getTime() + 61 * day);
      end();
      await minutes(15);
      const [second] = await issuedCertificates(ctx, "host_0none");
      expect(second?.chain).not.toBe(first?.chain);
      now = new Date(now.getTime() + 61 * day);
      await minutes(1);
      expect(await certificate()).toMatchObject({ step: "PUBLISH" });
      end();
      await minutes(30);
      expect((await issuedCertificates(ctx, "host_0none"))[0]?.chain).not.toBe(second?.chain);
      expect(await certificate()).toMatchObject({ error: null, errorSince: null });
    },
  );

  it("is issued all the same when every run ends after one of its requests", async () => {
    const original = vi.mocked(globalThis.fetch).getMockImplementation();
    for (let left = 1; (await issuedCertificates(ctx, "host_0none")).length === 0; left++) {
      let requests = 0;
      vi.mocked(globalThis.fetch).mockImplementation((input, init) => {
        // The connection is lost after the request has taken effect.
        const answer = original?.(input, init) as Promise<Response>;
        return ++requests > left ? answer.then(() => Promise.reject(new TypeError("lost"))) : answer;
      });
      await minutes(1);
      now = new Date(now.getTime() + 30 * 60_000);
      expect(left).toBeLessThan(60);
    }
    vi.mocked(globalThis.fetch).mockImplementation(original as typeof fetch);
    await minutes(3);
    expect(published()).toEqual([]);
    expect(await issuedCertificates(ctx, "host_0none")).toMatchObject([{ name }]);
  });

  it("is sent to all connected hosts when it is issued, until each has been told", async () => {
    const [host, other] = [await readyAgent(), await readyAgent()];
    let isAway = true;
    const told = vi.fn(async (hostId: string) => {
      if (isAway && hostId === host.hostId) throw new Error("away");
      return Promise.resolve();
    });
    ctx.hosts.certify = told;
    await minutes(5);
    expect(told.mock.calls.flat()).toEqual(expect.arrayContaining([host.hostId, other.hostId]));
    told.mockClear();
    isAway = false;
    await minutes(1);
    expect(told).toHaveBeenCalledWith(host.hostId);
    told.mockClear();
    await minutes(2);
    expect(told).not.toHaveBeenCalled();
    host.close();
    other.close();
  });

  it("is awaited until it is issued, while hosts obtain certificates of their own for twenty new sites a week together", async () => {
    const awaited = () => awaitedCertificate(ctx);
    // Those of other tests.
    await bindings.DB.prepare("UPDATE hosts SET status = 'REMOVED'").run();
    expect(await awaited()).toEqual({ name, since: now.toISOString(), own: 20 });
    authority.lookUp = () => [];
    await minutes(3);
    expect(await awaited()).toMatchObject({ name, own: 20 });
    expect((await certificate())?.error).toContain("did not accept the proof");
    now = new Date(now.getTime() + 15 * day);
    expect(await awaited()).toMatchObject({ name, own: 60 });
    const [host, other] = [await readyAgent(), await readyAgent()];
    expect(await awaited()).toMatchObject({ own: 30 });
    authority.lookUp = published;
    await minutes(5);
    expect(await issuedCertificates(ctx, "host_0none")).toMatchObject([{ name }]);
    expect(await awaited()).toBe(null);
    host.close();
    other.close();
  });

  it("is not the certificate of a custom domain, which its host obtains and of which a copy is kept", async () => {
    await bindings.DB.batch(
      [
        "INSERT INTO domains (id, site_id, name, challenge, created_at, verified_at) VALUES ('dom_1', 'site_1', 'www.kept.test', 'x', 0, 1)",
        "INSERT INTO certificates (id, chain, key_sealed, not_after, busy_until, next_at) VALUES ('www.kept.test', 'CHAIN', 'x', 9e15, 0, 0)",
      ].map((text) => bindings.DB.prepare(text)),
    );
    await minutes(3);
    expect(authority.orders.map((order) => order.name)).toEqual([name]);
    const kept = () => bindings.DB.prepare("SELECT id FROM certificates WHERE id <> ?").bind(name).all();
    expect((await kept()).results).toEqual([{ id: "www.kept.test" }]);
    await bindings.DB.prepare("DELETE FROM domains WHERE id = 'dom_1'").run();
    expect((await kept()).results).toEqual([]);
  });
});
