import { X509Certificate } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import type { ToAgent } from "../../protocol/agent/messages.ts";
import { clearAway, sql, tick } from "./hosts-service.ts";
import {
  account,
  api,
  deployResult,
  finish,
  finishNext,
  greetedAgent,
  operator,
  ready,
  runningSite,
  site,
  uniqueName,
  type Agent,
} from "./service.ts";

beforeEach(async () => {
  await clearAway();
  await sql("UPDATE sites SET leaving_host_id = NULL, leave_at = NULL");
});

type Peers = Extract<ToAgent, { type: "peers" }>;

async function newPublicKey(): Promise<string> {
  const curve = { name: "ECDSA", namedCurve: "P-256" };
  const { publicKey } = (await crypto.subtle.generateKey(curve, true, ["sign", "verify"])) as CryptoKeyPair;
  return Buffer.from(await crypto.subtle.exportKey("spki", publicKey)).toString("base64");
}

/** An agent of a new host that takes requests of others at this address. */
async function peerAt(ipv4: string | null, peer?: { port: number; publicKey: string }) {
  const { body } = await api<{ id: string; token: string }>(await operator(), "POST", "/hosts", {
    name: uniqueName("peer"),
  });
  await sql("UPDATE hosts SET ipv4 = ? WHERE id = ?", ipv4, body.id);
  const connected = await greetedAgent(
    { peer: peer ?? { port: 5302, publicKey: await newPublicKey() } },
    body,
  );
  connected.send(ready(10));
  return connected;
}

type PeerAgent = Awaited<ReturnType<typeof peerAt>>;

/** What it was told last, once that is so. */
async function told(on: Agent, is: (peers: Peers) => boolean): Promise<Peers> {
  for (;;) {
    const peers = await on.next("peers");
    if (is(peers)) return peers;
  }
}

async function moveTo(from: Agent, to: Agent): Promise<void> {
  await sql("UPDATE hosts SET status = 'DRAINING' WHERE id = ?", from.hostId);
  await sql("UPDATE hosts SET status = 'ACTIVE' WHERE id = ?", to.hostId);
  await tick();
  await finishNext(to, deployResult);
}

/** The time of the forwarding is over. */
async function evict(from: Agent, siteId: string): Promise<void> {
  await sql("UPDATE sites SET leave_at = 0 WHERE id = ?", siteId);
  await tick();
  const { job, attempt } = await from.next("job");
  expect(job.kind).toBe("site.evict");
  await finish(from, job, attempt);
}

async function setUp(addresses: (string | null)[]) {
  const key = await account();
  const old = await peerAt("192.0.2.1");
  const { siteId } = await runningSite(key, old);
  const others = [];
  for (const address of addresses) others.push(await peerAt(address));
  const { hostname } = new URL((await site(key, siteId)).url);
  return { key, old, others, siteId, hostname };
}

describe("a site that moves", () => {
  it("is forwarded by the host that it has left until the clock says that its time is over", async () => {
    const { key, old, others, siteId, hostname } = await setUp(["192.0.2.2"]);
    const [now] = others as [PeerAgent];
    await told(old, ({ forwards }) => forwards.length === 0);
    await moveTo(old, now);
    const place = { hostId: now.hostId, address: "192.0.2.2", port: 5302 };
    const sent = await told(old, ({ forwards }) => forwards.length > 0);
    expect(sent.forwards).toEqual([{ siteId, hostnames: [hostname], ...place }]);
    const arrived = await told(now, ({ from }) => from.length > 0);
    expect([arrived.from, arrived.sites]).toEqual([[old.hostId], [siteId]]);
    // The host cannot go as long as it forwards.
    expect((await api(await operator(), "DELETE", `/hosts/${old.hostId}`)).status).toBe(409);

    // A lost hint is made up for, with what is so by then.
    await sql(
      "INSERT INTO domains (id, site_id, name, challenge, verified_at, created_at, next_check_at) VALUES ('dom_1', ?, 'shop.example', 'x', 1, 1, 9e15)",
      siteId,
    );
    await tick();
    const again = await told(old, ({ forwards }) => forwards[0]?.hostnames.length === 2);
    expect(again.forwards[0]?.hostnames).toEqual([hostname, "shop.example"]);
    await sql("DELETE FROM domains WHERE id = 'dom_1'");

    await evict(old, siteId);
    await told(old, ({ forwards }) => forwards.length === 0);
    await told(now, ({ from }) => from.length === 0);
    expect((await api(await operator(), "DELETE", `/hosts/${old.hostId}`)).status).toBe(200);
    await told(now, ({ hosts }) => !hosts.includes(old.hostId as never));
    expect((await site(key, siteId)).hostId).toBe(now.hostId);
    now.close();
  });

  it("is forwarded at the next hello too, by certificates of one authority and of each host's own key", async () => {
    const { old, others } = await setUp(["192.0.2.2"]);
    const [now] = others as [PeerAgent];
    await moveTo(old, now);
    const before = await told(old, ({ forwards }) => forwards.length > 0);
    const publicKey = await newPublicKey();
    const { token } = old;
    const back = await greetedAgent({ peer: { port: 1, publicKey } }, token);
    const { certificate, authority, forwards } = await back.next("peers");
    expect([authority, forwards]).toEqual([before.authority, before.forwards]);
    const shown = new X509Certificate(certificate);
    expect(shown.subject).toBe(`CN=${old.hostId}`);
    expect(shown.verify(new X509Certificate(authority).publicKey)).toBe(true);
    expect(shown.publicKey.export({ type: "spki", format: "der" }).toString("base64")).toBe(publicKey);
    const { certificate: other } = await told(now, () => true);
    expect(new X509Certificate(other).subject).toBe(`CN=${now.hostId}`);
    const stored = await sql("SELECT * FROM peer_authorities");
    expect(JSON.stringify(stored.results)).not.toContain("PRIVATE KEY");
    back.close();
    now.close();
  });

  it("back and forth, and on to a third host, is forwarded to where it is", async () => {
    const { old, others, siteId } = await setUp(["192.0.2.2", "192.0.2.3"]);
    const [second, third] = others as [PeerAgent, PeerAgent];
    await sql("UPDATE hosts SET status = 'DRAINING' WHERE id = ?", third.hostId);
    const to = (address: string) => (peers: Peers) => peers.forwards[0]?.address === address;
    const none = ({ forwards }: Peers) => forwards.length === 0;
    await moveTo(old, second);
    await told(old, to("192.0.2.2"));
    await evict(old, siteId);
    await told(old, none);
    await moveTo(second, old);
    await told(second, to("192.0.2.1"));
    await told(old, ({ forwards, from }) => forwards.length === 0 && from.length === 1);
    await evict(second, siteId);
    await told(second, none);
    await sql("UPDATE hosts SET status = 'DRAINING' WHERE id = ?", second.hostId);
    await moveTo(old, third);
    await told(old, to("192.0.2.3"));
    for (const each of [old, second, third]) each.close();
  });

  it("is forwarded no more when it is deleted, or its new host is removed", async () => {
    const { key, old, others, siteId } = await setUp(["192.0.2.2"]);
    const [now] = others as [PeerAgent];
    await moveTo(old, now);
    await told(old, ({ forwards }) => forwards.length > 0);
    await api(key, "DELETE", `/sites/${siteId}`);
    const gone = await now.next("job");
    await finish(now, gone.job, gone.attempt);
    await tick();
    const left = await old.next("job");
    expect([gone.job.kind, left.job.kind]).toEqual(["site.delete", "site.evict"]);
    await finish(old, left.job, left.attempt);
    await told(old, ({ forwards }) => forwards.length === 0);

    const other = await runningSite(await account(), now);
    const last = await peerAt("192.0.2.9");
    await moveTo(now, last);
    await told(now, ({ forwards }) => forwards[0]?.siteId === other.siteId);
    last.close();
    await expect
      .poll(
        async () =>
          (await sql("SELECT 1 FROM hosts WHERE id = ? AND offline_since > 0", last.hostId)).results.length,
      )
      .toBe(1);
    expect((await api(await operator(), "DELETE", `/hosts/${last.hostId}?force=1`)).status).toBe(200);
    expect((await told(now, ({ forwards }) => forwards.length === 0)).hosts).not.toContain(last.hostId);
    for (const each of [old, now]) each.close();
  });
});

describe("a host", () => {
  it("whose address nobody knows is forwarded nothing, and its record says so", async () => {
    const { old, others } = await setUp([null]);
    const [now] = others as [PeerAgent];
    await moveTo(old, now);
    await told(now, ({ from }) => from.length > 0);
    expect((await told(old, ({ hosts }) => hosts.length === 2)).forwards).toEqual([]);
    const shown = async (hostId: string) =>
      (
        await api<{ data: { id: string; forwardingNotice: string | null }[] }>(
          await operator(),
          "GET",
          "/hosts",
        )
      ).body.data.find(({ id }) => id === hostId)?.forwardingNotice;
    expect(await shown(now.hostId)).toMatch(/^Other hosts do not know its address.*Set ipv4 or ipv6\.$/);
    expect(await shown(old.hostId)).toBeNull();
    for (const each of [old, now]) each.close();
  });

  it("of an earlier version takes no part in it, and one with a key that is none keeps its connection", async () => {
    const key = await account();
    const old = await greetedAgent();
    old.send(ready(10));
    const { siteId } = await runningSite(key, old);
    const now = await peerAt("192.0.2.2", { port: 5302, publicKey: "bm9uZQ==" });
    await moveTo(old, now);
    await evict(old, siteId);
    expect([...old.waiting(), ...now.waiting()].map(({ type }) => type)).not.toContain("peers");
    for (const each of [old, now]) each.close();
  });
});
