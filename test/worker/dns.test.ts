import { sql } from "drizzle-orm";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Id } from "../../protocol/ids.ts";
import { contextOf } from "../../worker/compose.ts";
import type { Ctx } from "../../worker/ctx.ts";
import { reconcileDns } from "../../worker/jobs/dns/reconcile.ts";
import { arrive } from "../../worker/jobs/hosts/arrive.ts";
import { evictLeft } from "../../worker/jobs/hosts/evict-left.ts";
import { changeHost } from "../../worker/services/hosts/change.ts";
import { removeSite } from "../../worker/services/sites/remove.ts";
import { getDns } from "../../worker/services/dns/get.ts";
import { hostRow, insert, newId, write, type Row } from "./billing-rows.ts";
import { CloudflareServer } from "../support/cloudflare/server.ts";
import { account, api, bindings, operator, readyAgent, runningSite, site, type Agent } from "./service.ts";

let cloudflare: CloudflareServer;
let deferred: Promise<unknown>[] = [];
let now: Date | undefined;

/** An installation whose records Cloudflare keeps. */
function installation(settings: Record<string, string> = {}): Ctx {
  const ctx = contextOf(
    {
      ...bindings,
      SITES_ORIGIN: "https://sites.test",
      DNS_PROVIDER: "cloudflare",
      CLOUDFLARE_ZONE_ID: cloudflare.zoneId,
      CLOUDFLARE_API_TOKEN: cloudflare.token,
      ...settings,
    } as typeof bindings,
    { type: "system" },
    (work) => void deferred.push(work),
  );
  return Object.defineProperty(ctx, "now", { value: () => now ?? new Date() });
}

async function settle(): Promise<void> {
  while (deferred.length > 0) await Promise.all(deferred.splice(0));
}

let key: string;
let host: Agent;
let siteId: string;
let hostname: string;

beforeEach(async () => {
  cloudflare = new CloudflareServer();
  deferred = [];
  now = undefined;
  await bindings.DB.batch([
    bindings.DB.prepare("DELETE FROM dns_zones"),
    // Those of other tests' hosts.
    bindings.DB.prepare("UPDATE hosts SET ipv4 = NULL, ipv6 = NULL, connected_from = NULL"),
  ]);
  key = await account();
  host = await readyAgent();
  ({ siteId } = await runningSite(key, host));
  hostname = `${new URL((await site(key, siteId)).url).hostname.split(".")[0]}.sites.test`;
  await api(await operator(), "PATCH", `/hosts/${host.hostId}`, { ipv4: "192.0.2.1" });
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) =>
    cloudflare.fetch(new Request(input, init)),
  );
});
afterEach(() => {
  vi.restoreAllMocks();
  host.close();
});

const records = () =>
  cloudflare.records.map(({ name, type, content, ttl, proxied }) => [name, type, content, ttl, proxied]);

describe("the records of the sites' domain", () => {
  it("lead each site's name to its host, and follow the host's addresses", async () => {
    const ctx = installation();
    await reconcileDns(ctx);
    expect(records()).toEqual([[hostname, "A", "192.0.2.1", 60, false]]);
    await changeHost(ctx, { id: host.hostId, ipv4: "192.0.2.7", ipv6: "2001:db8::7" });
    await settle();
    expect(records()).toEqual([
      [hostname, "A", "192.0.2.7", 60, false],
      [hostname, "AAAA", "2001:db8::7", 60, false],
    ]);
    expect(await getDns(ctx)).toMatchObject({ provider: "cloudflare", recordCount: 2, error: null });
  });

  it("go with the site, at once", async () => {
    const ctx = installation();
    await reconcileDns(ctx);
    const [row] = await ctx.db.all<{ account_id: string }>(
      `SELECT account_id FROM sites WHERE id = '${siteId}'`,
    );
    Object.assign(ctx, { actor: { type: "session", accountId: row?.account_id, sessionId: "ses_1" } });
    await removeSite(ctx, { id: siteId });
    await settle();
    expect(records()).toEqual([]);
  });

  it("are corrected where somebody changed or removed them", async () => {
    const ctx = installation();
    await reconcileDns(ctx);
    Object.assign(cloudflare.records[0] ?? {}, { content: "203.0.113.9", ttl: 3600 });
    await reconcileDns(ctx);
    expect(records()).toEqual([[hostname, "A", "192.0.2.1", 60, false]]);
    cloudflare.records = [];
    await reconcileDns(ctx);
    expect(records()).toEqual([[hostname, "A", "192.0.2.1", 60, false]]);
    await bindings.DB.prepare("UPDATE hosts SET ipv4 = NULL").run();
    await reconcileDns(ctx);
    expect(records()).toEqual([]);
  });

  it("are proxied where the operator wants Cloudflare's network", async () => {
    await reconcileDns(installation({ CLOUDFLARE_PROXIED: "on" }));
    expect(records()).toEqual([[hostname, "A", "192.0.2.1", 1, true]]);
    await reconcileDns(installation());
    expect(records()).toEqual([[hostname, "A", "192.0.2.1", 60, false]]);
  });

  it("of other people stay as they are, and the operator is told where one is in the way", async () => {
    const ctx = installation();
    cloudflare.add({ name: hostname, type: "CNAME", content: "elsewhere.test" });
    cloudflare.add({ name: "old.sites.test", type: "A", content: "203.0.113.1" });
    cloudflare.add({
      name: "other.test",
      type: "A",
      content: "203.0.113.2",
      comment: "Managed by Berth for sites.test",
    });
    const before = structuredClone(cloudflare.records);
    await reconcileDns(ctx);
    expect(cloudflare.records).toEqual(before);
    expect((await getDns(ctx)).conflicts).toEqual([
      { name: hostname, type: "A", found: "CNAME elsewhere.test" },
    ]);
    cloudflare.records.shift();
    await reconcileDns(ctx);
    expect(records().at(-1)).toEqual([hostname, "A", "192.0.2.1", 60, false]);
    expect((await getDns(ctx)).conflicts).toEqual([]);
  });

  it("stay while the provider is away, which the operator sees, and follow once it is back", async () => {
    const ctx = installation();
    await reconcileDns(ctx);
    cloudflare.isAway = true;
    await bindings.DB.prepare("UPDATE hosts SET ipv4 = '192.0.2.2' WHERE id = ?").bind(host.hostId).run();
    const began = Date.now();
    const asked = cloudflare.asked.length;
    for (let minute = 0; minute < 10; minute++) {
      now = new Date(began + minute * 60_000);
      await reconcileDns(ctx);
    }
    // After one, two and four minutes.
    expect(cloudflare.asked.length - asked).toBe(4);
    expect(records()).toEqual([[hostname, "A", "192.0.2.1", 60, false]]);
    const state = await getDns(ctx);
    expect(state.error).toBe("Cloudflare answered 503.");
    expect(Date.parse(state.errorSince ?? "")).toBe(began);
    cloudflare.isAway = false;
    now = new Date(began + 12 * 60_000);
    await reconcileDns(ctx);
    expect(records()).toEqual([[hostname, "A", "192.0.2.2", 60, false]]);
    expect(await getDns(ctx)).toMatchObject({ error: null, errorSince: null });
  });

  it("that the provider refuses hold up no other", async () => {
    const ctx = installation();
    const others = [];
    for (let count = 0; count < 3; count++) others.push(await runningSite(key, host));
    cloudflare.refusedNames.add(hostname);
    await reconcileDns(ctx);
    expect(records().length).toBe(3);
    expect((await getDns(ctx)).error).toBe(
      `${hostname}: Cloudflare answered 400: DNS name is invalid. (9000).`,
    );
  });

  /** So many other sites, on another host, whose names the provider refuses. */
  async function refusedSites(count: number): Promise<void> {
    const row = await bindings.DB.prepare("SELECT * FROM sites WHERE id = ?").bind(siteId).first<Row>();
    const on = newId("host");
    await write(hostRow(on, 4512, { ipv4: "192.0.2.50" }));
    for (let made = 0; made < count; made++) {
      const id = newId("site");
      const slug = id.toLowerCase().replace("_", "-");
      await write(insert("sites", { ...row, id, slug, name: slug, webhook_hash: id, host_id: on }));
      cloudflare.refusedNames.add(`${slug}.sites.test`);
    }
  }

  it("that the provider refuses hold up no correction, however many they are", async () => {
    const ctx = installation();
    await reconcileDns(ctx);
    await refusedSites(12);
    await bindings.DB.prepare("UPDATE hosts SET ipv4 = '192.0.2.2' WHERE id = ?").bind(host.hostId).run();
    await reconcileDns(ctx);
    expect(records()).toEqual([[hostname, "A", "192.0.2.2", 60, false]]);
  });

  it("that the provider refuses hold up no other correction, if it is one of a hundred and more", async () => {
    const ctx = installation();
    await refusedSites(130);
    cloudflare.refusedNames.clear();
    await reconcileDns(ctx);
    cloudflare.refusedNames.add(hostname);
    const began = Date.now();
    for (let minute = 0; minute < 5; minute++) {
      now = new Date(began + minute * 60_000);
      await bindings.DB.batch([
        bindings.DB.prepare("UPDATE dns_zones SET next_at = 0"),
        bindings.DB.prepare("UPDATE hosts SET ipv4 = ?").bind(`198.51.100.${minute}`),
      ]);
      await reconcileDns(ctx);
      const outdated = records().filter(([, , address]) => address !== `198.51.100.${minute}`);
      expect(outdated.map(([name]) => name)).toEqual([hostname]);
    }
  });

  it("that the provider refuses have others of their kind wait some minutes at most, however many they are", async () => {
    const ctx = installation();
    await refusedSites(20);
    const began = Date.now();
    for (let minute = 0; minute < 21; minute++) {
      now = new Date(began + minute * 60_000);
      await bindings.DB.prepare("UPDATE dns_zones SET next_at = 0").run();
      await reconcileDns(ctx);
    }
    expect(records()).toEqual([[hostname, "A", "192.0.2.1", 60, false]]);
  });

  it("are compared once at a time, and a change meanwhile is not missed", async () => {
    const ctx = installation();
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const original = cloudflare.fetch.bind(cloudflare);
    const holds = vi.spyOn(cloudflare, "fetch").mockImplementationOnce(async (request) => {
      const answer = await original(request);
      await held;
      return answer;
    });
    const first = reconcileDns(ctx);
    await vi.waitUntil(() => holds.mock.calls.length === 1);
    await changeHost(ctx, { id: host.hostId, ipv4: "192.0.2.3" });
    await settle();
    expect(cloudflare.records).toEqual([]);
    release();
    await first;
    expect(records()).toEqual([[hostname, "A", "192.0.2.3", 60, false]]);
  });

  it("are nobody's business without a provider", async () => {
    const ctx = installation({ DNS_PROVIDER: "none" });
    await reconcileDns(ctx);
    expect(cloudflare.asked).toEqual([]);
    expect(await getDns(ctx)).toMatchObject({ provider: "none", recordCount: 0, error: null });
  });
});

describe("after a move, the old host serves", () => {
  const began = Date.now();
  const newAddress = "192.0.2.50";
  const isAt = (address: string) =>
    cloudflare.records.some(({ name, content }) => name === hostname && content === address);
  let other: Agent;
  /** The site arrives on another host. */
  async function moved(ctx: Ctx): Promise<void> {
    other = await readyAgent();
    await api(await operator(), "PATCH", `/hosts/${other.hostId}`, { ipv4: newAddress });
    await bindings.DB.prepare("UPDATE sites SET move_host_id = ? WHERE id = ?")
      .bind(other.hostId, siteId)
      .run();
    await ctx.db.batch([...arrive(ctx, siteId as Id<"site">, other.hostId as Id<"host">, null, sql`1`)]);
  }
  /** What the clock does in this minute after `began`. @returns whether the old host is told to remove its copy */
  async function isEvictedIn(minute: number, ctx: Ctx): Promise<boolean> {
    now = new Date(began + minute * 60_000);
    await reconcileDns(ctx);
    await evictLeft(ctx);
    const jobs = await bindings.DB.prepare("SELECT id FROM jobs WHERE site_id = ? AND kind = 'site.evict'")
      .bind(siteId)
      .all();
    return jobs.results.length > 0;
  }
  afterEach(() => other.close());

  it("for a minute where Berth keeps no records", async () => {
    const ctx = installation({ DNS_PROVIDER: "none" });
    now = new Date(began);
    await moved(ctx);
    expect(await isEvictedIn(0.9, ctx)).toBe(false);
    expect(await isEvictedIn(1, ctx)).toBe(true);
  });

  it("while the provider is away, and until no resolver can know its address", async () => {
    const ctx = installation();
    now = new Date(began);
    await reconcileDns(ctx);
    cloudflare.isAway = true;
    await moved(ctx);
    for (let minute = 0; minute < 30; minute++) expect(await isEvictedIn(minute, ctx)).toBe(false);
    cloudflare.isAway = false;
    await bindings.DB.prepare("UPDATE dns_zones SET next_at = 0").run();
    for (const minute of [30, 31, 32]) expect(await isEvictedIn(minute, ctx)).toBe(false);
    expect(isAt(newAddress)).toBe(true);
    expect(await isEvictedIn(33, ctx)).toBe(true);
  });

  it("while the provider refuses the site's own record, for a day at most", async () => {
    const ctx = installation();
    now = new Date(began);
    await reconcileDns(ctx);
    cloudflare.refusedNames.add(hostname);
    await moved(ctx);
    for (const minute of [0, 1, 2, 10, 24 * 60 - 1])
      expect([minute, await isEvictedIn(minute, ctx)]).toEqual([minute, false]);
    expect((await getDns(ctx)).error).toContain(hostname);
    expect(await isEvictedIn(24 * 60, ctx)).toBe(true);
  });

  it("no longer because the provider refuses another site's record", async () => {
    const ctx = installation();
    const second = await runningSite(key, host);
    const [label] = new URL((await site(key, second.siteId)).url).hostname.split(".");
    cloudflare.refusedNames.add(`${label}.sites.test`);
    for (let minute = 0; minute < 20; minute++) {
      now = new Date(began + minute * 60_000);
      await reconcileDns(ctx);
    }
    expect((await getDns(ctx)).error).toContain(label);
    await moved(ctx);
    expect(await isEvictedIn(20, ctx)).toBe(false);
    expect(isAt(newAddress)).toBe(true);
    expect(await isEvictedIn(22, ctx)).toBe(false);
    expect(await isEvictedIn(23, ctx)).toBe(true);
  });
});

it("a host's addresses are those of a host", async () => {
  const patch = async (body: object) =>
    (await api(await operator(), "PATCH", `/hosts/${host.hostId}`, body)).status;
  for (const wrong of [
    {},
    { ipv4: "0.0.0.0" },
    { ipv4: "224.0.0.1" },
    { ipv4: "host" },
    { ipv6: "::" },
    { ipv6: "ff02::1" },
  ])
    expect([wrong, await patch(wrong)]).toEqual([wrong, 400]);
  expect(await patch({ ipv4: "10.0.0.5", ipv6: "fd00::5" })).toBe(200);
});
