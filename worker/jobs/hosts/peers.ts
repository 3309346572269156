import { and, eq, isNotNull, ne, sql } from "drizzle-orm";
import type { ToAgent } from "../../../protocol/agent/messages.ts";
import type { Id } from "../../../protocol/ids.ts";
import {
  issuePeerCertificate,
  makePeerAuthority,
  type PeerAuthority,
} from "../../adapters/peer-authority.ts";
import type { Ctx } from "../../ctx.ts";
import { domains, hosts, peerAuthorities, sites } from "../../db/schema.ts";
import { peerPlaceOf } from "../../domain/host-addresses.ts";
import { siteHostname } from "../../domain/slug.ts";

/** What the agent of a host is told of the others. */
type HostPeers = Extract<ToAgent, { type: "peers" }>;

/** The message has a limit; sites beyond it are answered by their copies. */
const maxForwards = 1000;
const renewAuthorityMs = 365 * 24 * 60 * 60_000;

/**
 * Sites whose requests the host that they have left passes on: from the batch in which they arrive elsewhere until the
 * eviction that follows `leave_at`.
 */
const isForwarded = and(isNotNull(sites.leaveAt), sql`host_id <> leaving_host_id`);

/** What a host is to the others now; null if its agent takes no part in it. */
export async function peersOf(ctx: Ctx, id: Id<"host">): Promise<HostPeers | null> {
  const all = await ctx.db.select().from(hosts).where(ne(hosts.status, "REMOVED"));
  const host = all.find((one) => one.id === id);
  if (host?.peerKey == null) return null;
  const [left, arrived, authority] = await Promise.all([
    ctx.db
      .select({
        siteId: sites.id,
        slug: sites.slug,
        hostId: sites.hostId,
        names: sql<string>`(SELECT json_group_array(name) FROM ${domains} WHERE site_id = sites.id AND verified_at IS NOT NULL)`,
      })
      .from(sites)
      .where(and(eq(sites.leavingHostId, id), isForwarded))
      .limit(maxForwards),
    ctx.db
      .select({ siteId: sites.id, from: sites.leavingHostId })
      .from(sites)
      .where(and(eq(sites.hostId, id), isForwarded))
      .limit(maxForwards),
    authorityOf(ctx),
  ]);
  const forwards = left.flatMap(({ siteId, slug, hostId, names }) => {
    const target = all.find((one) => one.id === hostId);
    const place = target && peerPlaceOf(target);
    if (!target || !place) return [];
    const own = siteHostname(ctx.config.SITES_ORIGIN, slug);
    const hostnames = [own, ...(JSON.parse(names) as string[])];
    return { siteId, hostnames, hostId: target.id, ...place };
  });
  return {
    type: "peers",
    certificate: await issuePeerCertificate(authority, { hostId: id, publicKey: host.peerKey }, ctx.now()),
    authority: authority.certificate,
    forwards,
    from: [...new Set(arrived.flatMap(({ from }) => from ?? []))],
    sites: arrived.map(({ siteId }) => siteId),
    hosts: all.map((one) => one.id),
  };
}

/** Created with the first host that needs it, and replaced a year before it ends; hosts are told with each message. */
async function authorityOf(ctx: Ctx): Promise<PeerAuthority> {
  const id = "hosts";
  const found = () => ctx.db.select().from(peerAuthorities).where(eq(peerAuthorities.id, id));
  const isFit = (row: { endsAt: Date } | undefined) =>
    row !== undefined && row.endsAt.getTime() > ctx.now().getTime() + renewAuthorityMs;
  let [row] = await found();
  if (!isFit(row)) {
    const { key, certificate, endsAt } = await makePeerAuthority(ctx.now());
    const made = { certificate, keySealed: ctx.secrets.seal(key, `peer_authorities:${id}`), endsAt };
    const before = row?.certificate ?? "";
    await ctx.db
      .insert(peerAuthorities)
      .values({ id, ...made })
      .onConflictDoUpdate({
        target: peerAuthorities.id,
        set: made,
        setWhere: eq(peerAuthorities.certificate, before),
      });
    // Another process may have been first.
    [row] = await found();
  }
  if (!row) throw new Error("The authority of the hosts was not stored");
  const { certificate, keySealed } = row;
  return { certificate, key: ctx.secrets.open(keySealed, `peer_authorities:${id}`) };
}

/** Lost hints are made up for: tells the hosts between which requests pass. */
export async function tellForwarding(ctx: Ctx): Promise<void> {
  const involved = await ctx.db
    .select({ from: sites.leavingHostId, to: sites.hostId })
    .from(sites)
    .where(and(isNotNull(sites.leavingHostId), isForwarded));
  const ids = new Set(involved.flatMap(({ from, to }) => [from, to].filter((id) => id !== null)));
  for (const id of ids) ctx.hosts.tellPeers(id);
}
