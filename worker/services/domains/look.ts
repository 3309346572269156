import { and, desc, eq, isNotNull, isNull, or, sql } from "drizzle-orm";
import type { Certificate } from "../../../protocol/agent/certificates.ts";
import type { DomainProblem } from "../../../protocol/api/domains.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import type { SiteRow } from "../../db/rows.ts";
import { certificates, deployments, domains, hosts } from "../../db/schema.ts";
import { dayOf } from "../../domain/times.ts";
import { exampleOf, isWildcard } from "../../../protocol/wildcards.ts";
import { isLoopback } from "../../../protocol/loopback.ts";
import { addressProblems, caaNames, caaProblem, leadsHere, proofProblem } from "../../domain/domain-check.ts";
import type { Addresses, CaaRecord } from "../../domain/resolved-records.ts";
import { isApex, pairOf } from "../../domain/domain-names.ts";
import { addressesOf } from "../../domain/host-addresses.ts";
import { arePublic } from "../../domain/public-address.ts";
import { renewalLateAt } from "../../domain/certificates.ts";
import { leftMail, lossMail, releaseMail, renewalMail, renewedMail } from "../../domain/domain-mails.ts";
import { domainEvents, releaseAt, untilNextLook, type DomainEventName } from "../../domain/domain-states.ts";
import { queueMail } from "../../mails/queue.ts";
import { prove } from "./prove.ts";
import { reaches } from "./reaches.ts";
import { isLeftOut } from "../../jobs/certificates/issued.ts";
import { queueRoutes } from "../../jobs/queue-routes.ts";
import { challengeOf, proofRecord, statusOf, targetOf, type DomainRow } from "./view.ts";

type LookedAt = Pick<SiteRow, "id" | "accountId" | "slug" | "hostId" | "name">;

/**
 * Looks at everything that a domain needs: its record of ownership, addresses, CAA records, and the certificate that its
 * host serves. Records what is found, and gives or takes the name accordingly. Repeatable at any time.
 * @returns the new row; null if the domain was removed meanwhile
 */
export async function lookAt(ctx: Ctx, site: LookedAt, row: DomainRow): Promise<DomainRow | null> {
  const target = targetOf(ctx, site);
  const [proof, found] = await Promise.all([
    proofsOf(ctx, row).catch(() => null),
    dnsOf(ctx, site, row.name, target),
  ]);
  const unproved =
    proof && (proof.elsewhere.includes(row.challenge) ? null : proofProblem(proofRecord(row), proof.found));
  let held = row;
  const problems: DomainProblem[] = [];
  if (!row.verifiedAt) {
    const won = proof && !unproved ? await prove(ctx, site, row, [...proof.found, ...proof.elsewhere]) : null;
    if (won) held = won;
    else problems.push(unproved ?? (proof ? heldElsewhere(row.name) : noResolver));
  }
  const dns = held.verifiedAt ? await throughProxy(ctx, site, row.name, found) : found;
  problems.push(...dns.addressProblems, ...dns.caaProblems);
  // Its certificate is renewed by this record.
  if (row.verifiedAt && unproved && isWildcard(row.name)) problems.push(unproved);
  if (!held.verifiedAt) return record(ctx, held, null, { problems });

  const isLost = unproved !== null && dns.leadsHere === false;
  if (isLost && row.lostSince && ctx.now() >= releaseAt(row.lostSince)) return release(ctx, site, held);
  const isSafe = (proof !== null && !unproved) || dns.leadsHere === true;
  const lostSince = isLost ? (row.lostSince ?? ctx.now()) : isSafe ? null : row.lostSince;
  if (lostSince) problems.unshift(releasePlanned(held, lostSince));
  if (dns.isUnknown) return record(ctx, held, null, { problems: [noResolver], lostSince });
  if (problems.length > 0) {
    if (lostSince && !row.lostSince) await warn(ctx, site, held, lostSince);
    else if (dns.namesLeftHost) await tellOfMove(ctx, site, held, target, problems);
    // These only keep its certificate from being renewed.
    else if (dns.leadsHere) await tellOfRenewal(ctx, site, held, held.certificate, problems);
    return record(ctx, held, "faulted", { problems, lostSince });
  }
  const { event, certificate, problem } = await served(ctx, site, held);
  if (certificate) await tellOfRenewal(ctx, site, held, certificate, problem ? [problem] : []);
  return record(ctx, held, event, { problems: problem ? [problem] : [], lostSince, certificate });
}

/** What is found where the record is to be, and elsewhere: a `www.` name is proved by its own record and by that of the name without it. */
async function proofsOf(ctx: Ctx, row: DomainRow): Promise<{ found: string[]; elsewhere: string[] }> {
  const { type, name } = proofRecord(row);
  if (type === "CNAME") return { found: await ctx.dns.alias(name), elsewhere: [] };
  const pair = isApex(row.name) ? null : pairOf(row.name);
  const others = pair === null ? [] : [row.name, pair].map(challengeOf).filter((other) => other !== name);
  const [found, ...elsewhere] = await Promise.all([
    ctx.dns.texts(name),
    ...others.map((other) => ctx.dns.texts(other)),
  ]);
  return { found, elsewhere: elsewhere.flat() };
}

type Dns = {
  addressProblems: DomainProblem[];
  caaProblems: DomainProblem[];
  /** null: not known. */
  leadsHere: boolean | null;
  /** It leads to a host where the site was before. */
  namesLeftHost: boolean;
  /** All of its addresses are on the internet. */
  isPublic: boolean;
  /** Not all of it could be looked up. */
  isUnknown: boolean;
};

async function dnsOf(ctx: Ctx, site: LookedAt, name: string, target: string): Promise<Dns> {
  const [found, certified] = await Promise.all([
    Promise.all([ctx.dns.addresses(exampleOf(name)), targetAddresses(ctx, target)]).catch(() => null),
    certifiedBy(ctx, name).catch(() => null),
  ]);
  if (!found || !certified)
    return {
      addressProblems: [],
      caaProblems: [],
      leadsHere: null,
      namesLeftHost: false,
      isPublic: false,
      isUnknown: true,
    };
  const [seen, resolved] = found;
  const { wanted, left } = seen.aliases.includes(target)
    ? { wanted: resolved, left: [] }
    : await afterMoves(ctx, site, seen, resolved);
  const forbids = certified.records.length
    ? caaProblem(name, certified.at, certified.records, ctx.config.CAA_ISSUERS)
    : null;
  const isKnown = wanted.v4.length + wanted.v6.length > 0;
  return {
    addressProblems: addressProblems(name, target, seen, wanted, left),
    caaProblems: forbids ? [forbids] : [],
    leadsHere: isKnown ? leadsHere(seen, wanted) : null,
    namesLeftHost: left.length > 0,
    isPublic: seen.v4.length + seen.v6.length > 0 && arePublic(seen),
    isUnknown: false,
  };
}

/** Addresses that are not the host's may be those of a CDN that leads to it. */
async function throughProxy(ctx: Ctx, { id, hostId }: LookedAt, name: string, dns: Dns): Promise<Dns> {
  if (dns.leadsHere !== false || dns.namesLeftHost || !dns.isPublic || hostId === null) return dns;
  const isReached = await reaches(ctx, { id, hostId }, exampleOf(name));
  return isReached ? { ...dns, addressProblems: [], leadsHere: true } : dns;
}

/**
 * Compares addresses that do not follow the site's own name with its host's. Where Berth maintains that name, resolvers may still know its
 * address of before the move.
 * @returns `left`: those of other hosts
 */
async function afterMoves(
  ctx: Ctx,
  { hostId }: LookedAt,
  seen: Addresses,
  resolved: Addresses,
): Promise<{ wanted: Addresses; left: string[] }> {
  const all = [...seen.v4, ...seen.v6];
  if (hostId === null || all.length === 0) return { wanted: resolved, left: [] };
  const isSeen = sql`(SELECT value FROM json_each(${JSON.stringify(all)}))`;
  const rows = await ctx.db
    .select({ id: hosts.id, ipv4: hosts.ipv4, ipv6: hosts.ipv6, connectedFrom: hosts.connectedFrom })
    .from(hosts)
    .where(
      or(
        eq(hosts.id, hostId),
        sql`(${hosts.ipv4} IN ${isSeen} OR ${hosts.ipv6} IN ${isSeen} OR ${hosts.connectedFrom} IN ${isSeen})`,
      ),
    );
  const [own, others] = [true, false].map((isOwn) => {
    const places = rows.filter(({ id }) => (id === hostId) === isOwn).map(addressesOf);
    return { v4: places.flatMap(({ ipv4 }) => ipv4 ?? []), v6: places.flatMap(({ ipv6 }) => ipv6 ?? []) };
  }) as [Pick<Addresses, "v4" | "v6">, Pick<Addresses, "v4" | "v6">];
  const here = ctx.zone ? [...own.v4, ...own.v6] : [...resolved.v4, ...resolved.v6];
  const left = [...others.v4, ...others.v6].filter((one) => all.includes(one) && !here.includes(one));
  const stays = (list: string[]) => list.filter((one) => !left.includes(one));
  const wanted = { ...resolved, v4: stays(resolved.v4), v6: stays(resolved.v6) };
  return { wanted: wanted.v4.length + wanted.v6.length > 0 ? wanted : { ...wanted, ...own }, left };
}

/** Names of one machine alone (RFC 6761) are in no DNS. */
const targetAddresses = async (ctx: Ctx, target: string): Promise<Addresses> =>
  isLoopback(target) ? { v4: ["127.0.0.1"], v6: ["::1"], aliases: [] } : ctx.dns.addresses(target);

/** The CAA records that count; none where sites have no certificates. */
async function certifiedBy(ctx: Ctx, name: string): Promise<{ at: string; records: CaaRecord[] }> {
  const none = { at: name, records: [] };
  if (!isHttps(ctx)) return none;
  for (const at of caaNames(name)) {
    const records = await ctx.dns.caa(at);
    if (records.length > 0) return { at, records };
  }
  return none;
}

const isHttps = (ctx: Ctx): boolean => ctx.config.SITES_ORIGIN.startsWith("https:");

type Served = {
  event: DomainEventName;
  certificate?: DomainRow["certificate"];
  problem?: DomainProblem;
};

/** How long a host may take to obtain a certificate while somebody waits. */
const issueWithinMs = 25_000;

async function served(ctx: Ctx, site: LookedAt, { name }: DomainRow): Promise<Served> {
  if (site.hostId === null)
    return {
      event: "waits",
      problem: {
        code: "site_not_placed",
        message: "DNS is correct. The site has not been deployed yet, so no host serves it: deploy it.",
      },
    };
  const order = isWildcard(name) ? await orderOf(ctx, name) : null;
  if (order && !order.chain) return notIssued(name, order);
  const keptUntil = order ? undefined : await keptUntilOf(ctx, name);
  const answer = await ctx.questions.ask(site.hostId, {
    kind: "certificate",
    siteId: site.id,
    hostname: name,
    timeoutMs: issueWithinMs,
    ...(keptUntil !== undefined && { keptUntil: keptUntil?.toISOString() ?? null }),
  });
  if (answer.kind !== "certificate")
    return {
      event: "waits",
      problem: {
        code: "host_unreachable",
        message:
          `DNS is correct, but the site's host could not be asked. ${answer.kind === "refused" ? answer.error : ""}`.trim(),
      },
    };
  const certificate = answer.certificate && { ...answer.certificate, ...(order && refusalOf(order)) };
  if (!answer.isServed)
    return {
      event: "waits",
      problem: {
        code: "route_pending",
        message: "DNS is correct. The site's host serves the name as soon as it has taken the job.",
      },
    };
  if (answer.obtained) await keep(ctx, name, answer.obtained, answer.certificate);
  if (!answer.tls || answer.isValid) return { event: "answered", certificate };
  if (certificate?.error)
    return {
      event: "faulted",
      certificate,
      problem: {
        code: "certificate_failed",
        message: `No certificate was issued for ${name}. ${certificate.error}`,
      },
    };
  if (order && (await isLeftOut(ctx, site.hostId, name)))
    return { event: "faulted", certificate, problem: noRoomFor(name) };
  return {
    event: "waits",
    certificate,
    problem: beingObtained(name),
  };
}

/** When the certificate ends that is kept of this name; null: none is. */
async function keptUntilOf(ctx: Ctx, name: string): Promise<Date | null> {
  const [kept] = await ctx.db
    .select({ notAfter: certificates.notAfter })
    .from(certificates)
    .where(eq(certificates.id, name));
  return kept?.notAfter ?? null;
}

/** Of a certificate with its authorities'; a host may claim anything, and all that it does share one message to another host. */
const maxChainCharacters = 16 * 1024;

/**
 * Keeps what the host has obtained: another one serves it at once when the site moves, before the name leads there and also if
 * this host is lost. The hosts renew it.
 */
async function keep(
  ctx: Ctx,
  name: string,
  { chain, key, notAfter }: Certificate,
  told: DomainRow["certificate"],
): Promise<void> {
  if (chain.length > maxChainCharacters) return;
  const kept = {
    chain,
    keySealed: ctx.secrets.seal(key, `certificates.key:${name}`),
    issuer: told?.issuer ?? null,
    notBefore: told?.notBefore == null ? null : new Date(told.notBefore),
    notAfter: new Date(notAfter),
    toldAt: ctx.now(),
  };
  const start = new Date(0);
  await ctx.db
    .insert(certificates)
    .values({ id: name, busyUntil: start, nextAt: start, ...kept })
    .onConflictDoUpdate({ target: certificates.id, set: kept });
}

type Order = Pick<typeof certificates.$inferSelect, "chain" | "error" | "errorSince" | "nextAt">;

/** The order of a wildcard's certificate, which the clock carries out. It is placed only here, once all else is right. */
async function orderOf(ctx: Ctx, name: string): Promise<Order | null> {
  const start = new Date(0);
  const { order } = await batch(ctx, {
    placed: ctx.db
      .insert(certificates)
      .values({ id: name, busyUntil: start, nextAt: start })
      .onConflictDoNothing(),
    order: ctx.db.select().from(certificates).where(eq(certificates.id, name)),
  });
  return order[0] ?? null;
}

const refusalOf = ({ error, errorSince }: Order) => ({ error, errorAt: errorSince?.toISOString() ?? null });

function notIssued(name: string, order: Order): Served {
  const certificate = { issuer: null, notBefore: null, notAfter: null, ...refusalOf(order) };
  const { error, nextAt } = order;
  if (error === null) return { event: "waits", certificate, problem: beingObtained(name) };
  const message = `No certificate was issued for ${name}. ${error} The next attempt is at ${nextAt.toISOString().slice(0, 16).replace("T", " ")} UTC.`;
  return { event: "faulted", certificate, problem: { code: "certificate_failed", message } };
}

const noRoomFor = (name: string): DomainProblem => ({
  code: "certificate_failed",
  message: `The certificate of ${name} has been issued, but the site's host serves as many wildcards as it can, which its accounts share equally. Remove a wildcard that you no longer need, or ask the operator to move the site to another host.`,
});

const beingObtained = (name: string): DomainProblem => ({
  code: "certificate_pending",
  message: `The certificate of ${name} is being obtained.`,
});

type Findings = {
  problems: DomainProblem[];
  lostSince?: Date | null;
  certificate?: DomainRow["certificate"] | undefined;
};

/** @param event null: the status stays */
async function record(
  ctx: Ctx,
  row: DomainRow,
  event: DomainEventName | null,
  found: Findings,
): Promise<DomainRow | null> {
  const before = statusOf(row);
  const change = event && domainEvents[event];
  const to = change && (change.from as readonly string[]).includes(before) ? change.to : before;
  const looks = to === before ? row.looks + 1 : 1;
  const now = ctx.now();
  const pendingMs = row.verifiedAt ? null : now.getTime() - row.createdAt.getTime();
  const wait = untilNextLook(
    found.problems.length > 0 && to === "ACTIVE" ? "VERIFIED" : to,
    looks,
    pendingMs,
  );
  const releaseMs = found.lostSince ? releaseAt(found.lostSince).getTime() : Infinity;
  const nextMs = Math.max(now.getTime() + 60_000, Math.min(now.getTime() + wait, releaseMs));
  const [written] = await ctx.db
    .update(domains)
    .set({
      ...(to !== "PENDING_VERIFICATION" && { state: to }),
      problems: found.problems,
      checkedAt: now,
      nextCheckAt: new Date(nextMs),
      looks,
      ...(found.lostSince !== undefined && { lostSince: found.lostSince }),
      ...(found.certificate !== undefined && { certificate: found.certificate }),
    })
    .where(
      and(
        eq(domains.id, row.id),
        row.verifiedAt ? isNotNull(domains.verifiedAt) : isNull(domains.verifiedAt),
      ),
    )
    .returning();
  if (written) return written;
  // It was given, taken or removed meanwhile: that counts.
  const [other] = await ctx.db.select().from(domains).where(eq(domains.id, row.id));
  return other ?? null;
}

/** The owner is mailed once for each time that the name is lost. */
const warn = (ctx: Ctx, site: LookedAt, row: DomainRow, lostSince: Date) =>
  queueMail(ctx, {
    id: `domain-lost:${row.id}:${lostSince.getTime()}`,
    accountId: site.accountId,
    ...lossMail({
      name: row.name,
      site: site.name,
      record: proofRecord(row),
      releaseAt: releaseAt(lostSince),
    }),
  });

/** The owner is mailed once for each move. */
async function tellOfMove(
  ctx: Ctx,
  site: LookedAt,
  row: DomainRow,
  target: string,
  problems: readonly DomainProblem[],
): Promise<void> {
  const [move] = await ctx.db
    .select({ id: deployments.id })
    .from(deployments)
    .where(
      and(
        eq(deployments.siteId, site.id),
        eq(deployments.trigger, "move"),
        sql`${deployments.status} IN ('LIVE', 'SUPERSEDED')`,
      ),
    )
    .orderBy(desc(deployments.id))
    .limit(1);
  if (!move) return;
  await queueMail(ctx, {
    id: `domain-left:${row.id}:${move.id}`,
    accountId: site.accountId,
    ...leftMail({
      name: row.name,
      site: site.name,
      target,
      problems: problems.map(({ message }) => message),
    }),
  });
}

/** The time at which its owner is told that it has not been renewed; null: its validity is not known. */
function lateAt(certificate: DomainRow["certificate"]): Date | null {
  const { notBefore, notAfter } = certificate ?? {};
  return notBefore && notAfter
    ? renewalLateAt({ notBefore: new Date(notBefore), notAfter: new Date(notAfter) })
    : null;
}

/** The owner is mailed once for each certificate that is late to be renewed, and once more when it has been. */
async function tellOfRenewal(
  ctx: Ctx,
  { accountId, name: site }: LookedAt,
  { id, name, certificate: before }: DomainRow,
  certificate: DomainRow["certificate"],
  problems: readonly DomainProblem[],
): Promise<void> {
  const isLate = (one: DomainRow["certificate"]) => ctx.now() >= (lateAt(one) ?? Infinity);
  const notAfter = new Date(certificate?.notAfter ?? 0);
  const mailId = (of: DomainRow["certificate"]) => `domain-renewal:${id}:${of?.notAfter}`;
  if (isLate(certificate)) {
    const refusal = certificate?.error == null ? [] : [certificate.error];
    const reasons = problems.length > 0 ? problems.map(({ message }) => message) : refusal;
    await queueMail(ctx, {
      id: mailId(certificate),
      accountId,
      ...renewalMail({ name, site, notAfter, reasons }),
    });
  } else if (isLate(before) && lateAt(certificate))
    await queueMail(
      ctx,
      { id: `${mailId(before)}:renewed`, accountId, ...renewedMail({ name, site, notAfter }) },
      sql`EXISTS (SELECT 1 FROM mails WHERE id = ${mailId(before)})`,
    );
}

async function release(ctx: Ctx, site: LookedAt, row: DomainRow): Promise<DomainRow | null> {
  const now = ctx.now();
  const isReleased = sql`(SELECT verified_at IS NULL FROM domains WHERE id = ${row.id})`;
  const {
    released: [released],
  } = await batch(ctx, {
    released: ctx.db
      .update(domains)
      .set({
        verifiedAt: null,
        lostSince: null,
        certificate: null,
        problems: [
          {
            code: "name_released",
            message: `${row.name} was released, because its ownership record and its address were gone for a week. Create ${proofRecord(row).type} ${proofRecord(row).name} with the value ${row.challenge}, then verify again.`,
          },
        ],
        checkedAt: now,
        looks: 8,
        nextCheckAt: new Date(now.getTime() + untilNextLook("PENDING_VERIFICATION", 8, 0)),
      })
      .where(and(eq(domains.id, row.id), isNotNull(domains.verifiedAt), isNotNull(domains.lostSince)))
      .returning(),
    routes: queueRoutes(ctx, site.id, isReleased),
    mail: queueMail(
      ctx,
      {
        id: `domain-released:${row.id}:${row.lostSince?.getTime() ?? 0}`,
        accountId: site.accountId,
        ...releaseMail({ name: row.name, site: site.name, record: proofRecord(row) }),
      },
      isReleased,
    ),
  });
  if (site.hostId) ctx.hosts.wake(site.hostId);
  return released ?? null;
}

const heldElsewhere = (name: string): DomainProblem => ({
  code: "name_held",
  message: `${name} is in use by another site. Remove it there first, or delete that site's TXT record and try again in an hour.`,
});

const noResolver: DomainProblem = {
  code: "resolver_unavailable",
  message: "The name servers could not be queried. Try again in a minute.",
};

const releasePlanned = (row: DomainRow, lostSince: Date): DomainProblem => ({
  code: "release_planned",
  message: `Neither the ownership record at ${proofRecord(row).name} nor the address of ${row.name} leads here any more. If this does not change, the name is released on ${dayOf(releaseAt(lostSince))}.`,
});
