import { afterEach, describe, expect, it, vi } from "vitest";
import type { Domain } from "../../protocol/api/domains.ts";
import { answerFromZone, type Zone } from "../support/dns-zone.ts";
import {
  account,
  api,
  createSite,
  deployResult,
  finish,
  readyAgent,
  runningSite,
  site,
  uniqueName,
} from "./service.ts";

const change = (key: string, id: string, domain: unknown) =>
  api<Domain & { reason: string }>(key, "PATCH", `/sites/${id}`, { domain });
const newName = () => `${uniqueName("www")}.example.com`;

/** What the resolvers know: TXT records by name, or a zone; null: this resolver is away. */
function resolvers(...zones: (Record<string, string[]> | null)[]) {
  resolveFrom(
    ...zones.map(
      (zone) => zone && Object.fromEntries(Object.entries(zone).map(([name, TXT]) => [name, { TXT }])),
    ),
  );
}
function resolveFrom(...zones: (Zone | null)[]) {
  let turn = 0;
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input) => {
    const url = new URL(new Request(input).url);
    const zone = zones[turn++ % zones.length];
    if (!zone) throw new Error("unreachable");
    return answerFromZone(zone, url);
  });
}
afterEach(() => vi.restoreAllMocks());

describe("a site's own domain", () => {
  it("is added with the record that proves it, and the same one when asked again", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const name = newName();
    const { status, body } = await change(key, siteId, name.toUpperCase());
    expect([status, body.domain, body.status]).toEqual([200, name, "PENDING_VERIFICATION"]);
    expect(body.record).toMatchObject({ type: "TXT", name: `_berth-challenge.${name}` });
    expect(body.target).toBe(new URL((await site(key, siteId)).url).hostname);
    expect((await change(key, siteId, name)).body).toEqual(body);
    expect((await site(key, siteId)).domains).toEqual([body]);
  });

  it("is refused where it is no name, the service's own, or that of another account's site", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    for (const wrong of [
      "localhost",
      "a b.com",
      "10.0.0.1",
      "a.localhost",
      "-a.example.com",
      "x".repeat(254),
      {},
      7,
    ])
      expect([wrong, (await change(key, siteId, wrong)).status]).toEqual([wrong, 400]);
    expect((await change(await account(), siteId, newName())).status).toBe(403);
    expect((await change(key, siteId, { verify: "unknown.example.com" })).status).toBe(404);
    expect((await change(key, siteId, { remove: "unknown.example.com" })).status).toBe(404);
  });

  it("is verified by its TXT record only, also when one resolver is away or answers in parts", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const name = newName();
    const { record } = (await change(key, siteId, name)).body;
    const verify = () => change(key, siteId, { verify: name });
    resolvers(null);
    expect((await verify()).body.reason).toContain("could not be queried");
    resolvers({});
    expect((await verify()).body.reason).toContain("no TXT record");
    resolvers({ [record.name]: ['"berth-verify=another"'] });
    expect([(await verify()).status, (await verify()).body.reason]).toEqual([
      409,
      expect.stringContaining("a different value"),
    ]);
    resolvers({ [record.name]: [`"${record.value.slice(0, 9)}" "${record.value.slice(9)}"`] }, null);
    expect((await verify()).body.verifiedAt).not.toBeNull();
  });

  it("belongs to the first site that proves it", async () => {
    const [a, b] = [await account(), await account()];
    const [first, second] = [await createSite(a), await createSite(b)];
    const name = newName();
    const records = [
      (await change(a, first.siteId, name)).body.record,
      (await change(b, second.siteId, name)).body.record,
    ];
    expect(records[0]?.value).not.toBe(records[1]?.value);
    resolvers({ [`_berth-challenge.${name}`]: records.map((one) => `"${one.value}"`) });
    const won = await Promise.all([
      change(a, first.siteId, { verify: name }),
      change(b, second.siteId, { verify: name }),
    ]);
    expect(won.map(({ status }) => String(status)).toSorted()).toEqual(["200", "409"]);
    const winner = won[0]?.status === 200 ? { key: a, id: first.siteId } : { key: b, id: second.siteId };
    const loser = winner.key === a ? { key: b, id: second.siteId } : { key: a, id: first.siteId };
    expect((await change(winner.key, winner.id, { remove: name })).status).toBe(200);
    expect((await change(loser.key, loser.id, { verify: name })).status).toBe(200);
  });

  it("goes to who proves it now, when the record of the site that has it is gone", async () => {
    const [before, after] = [await account(), await account()];
    const host = await readyAgent();
    const had = await runningSite(before, host);
    const has = await runningSite(after, host);
    const name = newName();
    const old = (await change(before, had.siteId, name)).body.record;
    const fresh = (await change(after, has.siteId, name)).body.record;
    resolvers({ [old.name]: [old.value] });
    expect((await change(before, had.siteId, { verify: name })).status).toBe(200);
    const first = await host.next("job");
    await finish(host, first.job, first.attempt);
    resolvers({ [old.name]: [old.value, fresh.value] });
    expect((await change(after, has.siteId, { verify: name })).status).toBe(409);
    resolvers({ [old.name]: [fresh.value] });
    expect((await change(after, has.siteId, { verify: name })).status).toBe(200);
    expect((await site(before, had.siteId)).domains).toMatchObject([
      { domain: name, status: "PENDING_VERIFICATION" },
    ]);
    for (const [siteId, served] of [
      [had.siteId, false],
      [has.siteId, true],
    ] as const) {
      const told = await host.next("job");
      expect(told.job).toMatchObject({ kind: "site.route", args: { siteId } });
      expect((told.job.args as { hostnames: string[] }).hostnames.includes(name)).toBe(served);
      await finish(host, told.job, told.attempt);
    }
    expect((await change(before, had.siteId, { verify: name })).status).toBe(409);
    host.close();
  });

  it("is released when the deletion of its site is requested, also while the site's host is away", async () => {
    const [before, after] = [await account(), await account()];
    const away = await readyAgent();
    const had = await runningSite(before, away);
    const has = await createSite(after);
    const name = newName();
    const old = (await change(before, had.siteId, name)).body.record;
    const fresh = (await change(after, has.siteId, name)).body.record;
    resolvers({ [old.name]: [old.value, fresh.value] });
    expect((await change(before, had.siteId, { verify: name })).status).toBe(200);
    const { job, attempt } = await away.next("job");
    await finish(away, job, attempt);
    away.close();
    expect((await change(after, has.siteId, { verify: name })).status).toBe(409);
    await api(before, "DELETE", `/sites/${had.siteId}`);
    expect(await site(before, had.siteId)).toMatchObject({ status: "DELETING", domains: [] });
    expect((await change(after, has.siteId, { verify: name })).body.verifiedAt).not.toBeNull();
    const back = await readyAgent(10, away.token);
    expect((await back.next("job")).job).toMatchObject({ kind: "site.delete", args: { siteId: had.siteId } });
    back.close();
  });

  it("reaches the host that runs the site, added and removed, and every later deployment", async () => {
    const key = await account();
    const host = await readyAgent();
    const { siteId } = await runningSite(key, host);
    const name = newName();
    const { record } = (await change(key, siteId, name)).body;
    resolvers({ [record.name]: [record.value] });
    await change(key, siteId, { verify: name });
    const own = new URL((await site(key, siteId)).url).hostname;
    const told = await host.next("job");
    expect([told.job.kind, told.job.args]).toEqual([
      "site.route",
      { siteId, hostnames: [own, name], ingress: {}, readAtMs: expect.any(Number) },
    ]);
    await finish(host, told.job, told.attempt);
    await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    const deploy = await host.next("job");
    expect(deploy.job.args).toMatchObject({ run: { hostnames: [own, name] } });
    await finish(host, deploy.job, deploy.attempt, deployResult);
    await change(key, siteId, { remove: name });
    const untold = await host.next("job");
    expect(untold.job.args).toMatchObject({ siteId, hostnames: [own], ingress: {} });
    await finish(host, untold.job, untold.attempt);
    expect((await site(key, siteId)).domains).toEqual([]);
    expect((await site(key, siteId)).status).toBe("RUNNING");
  });
});
