import { and, eq, inArray, isNotNull, isNull, lte, ne, sql } from "drizzle-orm";
import { sitesDomain, sitesWildcard } from "../../adapters/dns-zone/index.ts";
import { ZoneError, type Zone } from "../../adapters/dns-zone/zone.ts";
import type { Ctx } from "../../ctx.ts";
import { certificates, dnsZones, domains, hosts, sites } from "../../db/schema.ts";
import { challengeName } from "../../domain/certificates.ts";
import {
  planZone,
  retryMs,
  urgency,
  wantedSets,
  type RecordSet,
  type ZoneChange,
  type ZonePlan,
} from "../../domain/dns-records.ts";
import { addressesOf } from "../../domain/host-addresses.ts";
import { leaveAfterDnsMs } from "../../domain/job-rules.ts";
import { siteHostname } from "../../domain/slug.ts";
import { logError } from "../../log-error.ts";

/** Longer than any round takes: each is a bounded number of requests with a time limit. */
const roundMs = 15 * 60_000;
/** Of each urgency. The others follow in the next round. */
const maxChanges = 200;
/** Requests of each urgency per round, once one of them is refused: to take one of 200 changes apart from all others takes 17. */
const maxRequests = 24;
/** Rounds that follow hints at once; later hints are served by the timer. */
const maxRounds = 3;

/** Something that the records follow has changed. Lost hints cost a minute: the timer compares everything anyway. */
export function hintDns(ctx: Ctx): void {
  if (!ctx.zone) return;
  ctx.defer(
    ctx.db
      .update(dnsZones)
      .set({ hinted: true })
      .where(eq(dnsZones.id, sitesDomain(ctx.config)))
      .then(() => reconcileDns(ctx)),
  );
}

/** Compares the records of the sites' domain with the sites and corrects them. Runs once at a time. */
export async function reconcileDns(ctx: Ctx): Promise<void> {
  const { zone } = ctx;
  if (!zone) return;
  const id = sitesDomain(ctx.config);
  const start = new Date(0);
  await ctx.db.insert(dnsZones).values({ id, busyUntil: start, nextAt: start }).onConflictDoNothing();
  for (let round = 0; round < maxRounds; round++) {
    const now = ctx.now();
    const [begun] = await ctx.db
      .update(dnsZones)
      .set({ busyUntil: new Date(now.getTime() + roundMs), hinted: false })
      .where(and(eq(dnsZones.id, id), lte(dnsZones.busyUntil, now), lte(dnsZones.nextAt, now)))
      .returning();
    if (!begun) return;
    const outcome = await runRound(ctx, zone);
    const failures = outcome.isAway ? begun.failures + 1 : 0;
    const [ended] = await ctx.db
      .update(dnsZones)
      .set({
        busyUntil: start,
        nextAt: failures === 0 ? start : new Date(ctx.now().getTime() + retryMs(failures)),
        failures,
        error: outcome.error,
        errorSince: outcome.error === null ? null : (begun.errorSince ?? ctx.now()),
        ...(outcome.plan && {
          conflicts: outcome.plan.conflicts.slice(0, 100),
          recordCount: outcome.recordCount,
        }),
        ...(outcome.error === null && { syncedAt: ctx.now() }),
      })
      .where(and(eq(dnsZones.id, id), eq(dnsZones.busyUntil, begun.busyUntil)))
      .returning();
    if (failures > 0 || !ended?.hinted) return;
  }
}

/** `isAway`: the provider does not work, which is no refusal of some records. */
type Outcome = { error: string | null; isAway: boolean; plan: ZonePlan | null; recordCount: number };

async function runRound(ctx: Ctx, zone: Zone): Promise<Outcome> {
  let plan: ZonePlan | null = null;
  let recordCount = 0;
  try {
    const { wanted, placed } = await wantedNow(ctx);
    recordCount = wanted.length;
    const found = await zone.list();
    plan = planZone(wanted, found);
    const { refusal, left } = await applyEach(zone, plan.changes, Math.floor(ctx.now().getTime() / 60_000));
    const names = new Set([...left].map(nameOf));
    const settled = ({ name }: { name: string }) => !names.has(name);
    await recordPublished(ctx, without(wanted, plan.conflicts).filter(settled));
    await letLeave(ctx, placed.filter(settled));
    return { error: refusal, isAway: false, plan, recordCount };
  } catch (error) {
    if (!(error instanceof ZoneError)) logError({ task: "dns" }, error);
    return {
      error: error instanceof ZoneError ? error.message : "The records could not be compared; see the log.",
      isAway: true,
      plan,
      recordCount,
    };
  }
}

const without = (wanted: readonly RecordSet[], conflicts: ZonePlan["conflicts"]) =>
  wanted.filter((set) => !conflicts.some(({ name, type }) => set.name === name && set.type === type));

const nameOf = (change: ZoneChange): string => (change.wanted ?? change.found).name;

type Placed = { id: string; hostId: string | null; leaveAt: Date | null };

/** The records of these sites lead to these hosts now. A site that has moved on since is not concerned. */
async function letLeave(ctx: Ctx, placed: readonly Placed[]): Promise<void> {
  const leaveAt = new Date(ctx.now().getTime() + leaveAfterDnsMs);
  const leaving = placed.filter(({ leaveAt: before }) => before !== null && before > leaveAt);
  if (leaving.length === 0) return;
  const pairs = JSON.stringify(leaving.map(({ id, hostId }) => [id, hostId]));
  await ctx.db
    .update(sites)
    .set({ leaveAt })
    .where(
      sql`leave_at > ${leaveAt.getTime()} AND (id, host_id) IN (SELECT value ->> 0, value ->> 1 FROM json_each(${pairs}))`,
    );
}

/** The certificates whose challenges are in the zone now may be validated. */
async function recordPublished(ctx: Ctx, sets: readonly RecordSet[]): Promise<void> {
  const values = sets.flatMap(({ type, contents }) => (type === "TXT" ? contents : []));
  if (values.length === 0) return;
  await ctx.db
    .update(certificates)
    .set({ publishedAt: ctx.now() })
    .where(and(inArray(certificates.challengeValue, values.slice(0, 50)), isNull(certificates.publishedAt)));
}

async function wantedNow(ctx: Ctx) {
  const own = sitesDomain(ctx.config);
  const ordered = await ctx.db
    .select({ id: certificates.id, value: certificates.challengeValue, delegatedTo: domains.challenge })
    .from(certificates)
    .leftJoin(domains, and(eq(domains.name, certificates.id), isNotNull(domains.verifiedAt)))
    .where(isNotNull(certificates.step));
  const challenges = ordered.flatMap(({ id, value, delegatedTo }) => {
    const name = id === sitesWildcard(ctx.config) ? challengeName(id) : delegatedTo;
    // A domain that was added when the sites had another name delegates to that one.
    return name?.endsWith(`.${own}`) ? [{ name, value: value ?? "" }] : [];
  });
  const rows = await ctx.db
    .select({
      id: sites.id,
      hostId: sites.hostId,
      leaveAt: sites.leaveAt,
      slug: sites.slug,
      ipv4: hosts.ipv4,
      ipv6: hosts.ipv6,
      connectedFrom: hosts.connectedFrom,
    })
    .from(sites)
    .innerJoin(hosts, eq(hosts.id, sites.hostId))
    .where(and(isNotNull(sites.hostId), ne(sites.status, "DELETING"), ne(hosts.status, "REMOVED")));
  const placed = rows.map((row) => ({
    ...row,
    name: siteHostname(ctx.config.SITES_ORIGIN, row.slug),
  }));
  const wanted = wantedSets(
    placed.map(({ name, ...host }) => ({ hostname: name, ...addressesOf(host) })),
    challenges,
    { proxied: ctx.config.DNS_PROVIDER === "cloudflare" && ctx.config.CLOUDFLARE_PROXIED === "on" },
  );
  return { wanted, placed };
}

/**
 * Applies the changes together, the most urgent first. If the provider refuses some of them, the others take effect
 * all the same.
 * @param turn another one in each round begins with another change, so that none waits for ever behind refused ones
 * @returns the first refusal, and the changes that did not take effect
 * @throws ZoneError if the provider does not work
 */
async function applyEach(zone: Zone, changes: readonly ZoneChange[], turn: number) {
  const left = new Set(changes);
  let refusal: string | null = null;
  for (const equals of Map.groupBy(changes, urgency).values()) {
    const first = turn % equals.length;
    const waiting = [[...equals.slice(first), ...equals.slice(0, first)].slice(0, maxChanges)];
    for (let requests = 0; waiting.length > 0 && requests < maxRequests; requests++) {
      const some = waiting.shift() ?? [];
      try {
        await zone.apply(some);
        for (const change of some) left.delete(change);
      } catch (error) {
        if (!(error instanceof ZoneError) || !error.refused) throw error;
        const half = Math.ceil(some.length / 2);
        if (some.length > 1) waiting.unshift(some.slice(0, half), some.slice(half));
        else refusal ??= `${some.map(nameOf)[0]}: ${error.message}`;
      }
    }
    if (waiting.length > 0) refusal ??= "The provider refuses some of the records.";
  }
  return { refusal, left };
}
