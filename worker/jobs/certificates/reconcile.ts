import { and, asc, desc, eq, inArray, isNotNull, isNull, lte, ne, or, sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import { AccountGoneError, AcmeError, type AcmeAccount, type AcmeOrder } from "../../adapters/acme.ts";
import { sitesWildcard } from "../../adapters/dns-zone/index.ts";
import type { Ctx } from "../../ctx.ts";
import { acmeAccounts, certificates, domains, hosts, sites } from "../../db/schema.ts";
import {
  certificateRetryMs,
  challengeName,
  orderWithinMs,
  publishedWithinMs,
  renewAt,
} from "../../domain/certificates.ts";
import { eachAlone } from "../../each-alone.ts";
import { logError } from "../../log-error.ts";

type Row = typeof certificates.$inferSelect;
type Changes = Partial<typeof certificates.$inferInsert>;
/** The columns that a step changes, or "wait": nothing can be done before the next run. */
type Next = Changes | "wait";

/** Longer than the requests of one run may take. */
const runMs = 5 * 60_000;
/** More than an order has. */
const maxSteps = 8;

const noOrder = {
  step: null,
  orderedAt: null,
  orderUrl: null,
  challengeUrl: null,
  challengeValue: null,
  publishedAt: null,
  orderKeySealed: null,
} satisfies Changes;

/** The others are copies of what hosts obtain, which go with their domain (`drizzle/*_forget_certificates.sql`). A range, so that the index is used. */
export const wildcardsOnly = sql`(${certificates.id} >= '*.' AND ${certificates.id} < '*/')`;

/** In one run: authorities limit orders, and a Worker its requests. */
const maxOrders = 10;
const ordersAtOnce = 5;

/** Whether wildcard certificates can be had: of the sites' own names, and of custom domains that delegate their proof. */
export const issuesWildcards = (ctx: Ctx): boolean =>
  ctx.zone !== null && ctx.config.SITES_ORIGIN.startsWith("https:");

/**
 * Obtains and renews wildcard certificates by DNS-01 (RFC 8555, section 8.4). Each step is stored before the next one begins,
 * so an interrupted order continues. The present certificate stays until another is issued.
 * @returns whether the zone needs other challenges than before
 */
export async function reconcileCertificates(ctx: Ctx): Promise<boolean> {
  if (!issuesWildcards(ctx)) return false;
  const own = sitesWildcard(ctx.config);
  const start = new Date(0);
  const now = ctx.now();
  // Nobody holds the name any more.
  const isHeld = sql`EXISTS (SELECT 1 FROM domains WHERE name = certificates.id AND verified_at IS NOT NULL)`;
  await ctx.db
    .delete(certificates)
    .where(
      and(wildcardsOnly, ne(certificates.id, own), lte(certificates.busyUntil, now), sql`NOT ${isHeld}`),
    );
  const isDue = and(wildcardsOnly, lte(certificates.busyUntil, now), lte(certificates.nextAt, now));
  await ctx.db
    .insert(certificates)
    .values({ id: own, busyUntil: start, nextAt: start })
    .onConflictDoNothing();
  const due = await ctx.db
    .select({ id: certificates.id })
    .from(certificates)
    .where(isDue)
    .orderBy(desc(eq(certificates.id, own)), asc(certificates.nextAt))
    .limit(maxOrders);
  let isChanged = false;
  await eachAlone(
    "certificates",
    due,
    async ({ id }) => {
      const [begun] = await ctx.db
        .update(certificates)
        .set({ busyUntil: new Date(now.getTime() + runMs) })
        .where(and(eq(certificates.id, id), isDue))
        .returning();
      if (begun) isChanged = (await run(ctx, begun)).challengeValue !== begun.challengeValue || isChanged;
    },
    ordersAtOnce,
  );
  await tellHosts(ctx, own);
  return isChanged;
}

async function run(ctx: Ctx, begun: Row): Promise<Row> {
  let row = begun;
  const save = async (changes: Changes) => {
    const [saved] = await ctx.db
      .update(certificates)
      .set(changes)
      .where(and(eq(certificates.id, row.id), eq(certificates.busyUntil, begun.busyUntil)))
      .returning();
    // Another run has taken over.
    if (!saved) return false;
    row = saved;
    return true;
  };
  try {
    for (let count = 0; count < maxSteps; count++) {
      const next = await nextStep(ctx, row);
      if (next === "wait") break;
      if (!(await save(next))) return row;
    }
    await save({ busyUntil: new Date(0), nextAt: nextRunOf(row) });
  } catch (error) {
    if (!(error instanceof AcmeError)) logError({ task: "certificate" }, error);
    // The next attempt registers another one. Another run may have done so already.
    if (error instanceof AccountGoneError)
      await ctx.db.delete(acmeAccounts).where(eq(acmeAccounts.url, error.accountUrl));
    const failures = row.failures + 1;
    await save({
      busyUntil: new Date(0),
      failures,
      nextAt: new Date(ctx.now().getTime() + certificateRetryMs(failures)),
      error:
        error instanceof AcmeError ? error.message : "The certificate could not be renewed; see the log.",
      errorSince: row.errorSince ?? ctx.now(),
      ...(error instanceof AcmeError && error.refused && noOrder),
    });
  }
  return row;
}

async function nextStep(ctx: Ctx, row: Row): Promise<Next> {
  const now = ctx.now();
  const order = orderOf(row);
  if (!order) return isDue(row, now) ? begin(ctx, row.id) : "wait";
  if (row.orderedAt && row.orderedAt.getTime() + orderWithinMs < now.getTime())
    throw new AcmeError(whyLate(row), true);
  const account = await accountAt(ctx);
  switch (row.step) {
    case null:
      return "wait";
    case "PUBLISH": {
      // The authority may remember an earlier proof.
      const { status } = await ctx.acme.state(account, order);
      if (status !== "pending") return { step: "VALIDATE" };
      if (!row.publishedAt || !(await isVisible(ctx, row, row.publishedAt))) return "wait";
      await ctx.acme.answer(account, order);
      return { step: "VALIDATE" };
    }
    case "VALIDATE": {
      const { status, reason } = await ctx.acme.state(account, order);
      if (status === "invalid") throw new AcmeError(refusalOf(reason), true);
      if (status === "pending" || status === "processing") return "wait";
      const key = await ctx.acme.newKey();
      return { step: "FINALIZE", orderKeySealed: ctx.secrets.seal(key, `certificates.order_key:${row.id}`) };
    }
    case "FINALIZE":
      return finalize(ctx, row, account, order);
  }
}

/** What waits for its renewal is left alone until then. */
const nextRunOf = ({ step, notBefore, notAfter }: Row): Date =>
  step === null && notBefore && notAfter ? renewAt({ notBefore, notAfter }) : new Date(0);

const orderOf = ({ step, orderUrl, challengeUrl, challengeValue }: Row): AcmeOrder | null =>
  step && orderUrl && challengeUrl && challengeValue ? { orderUrl, challengeUrl, challengeValue } : null;

const isDue = ({ notBefore, notAfter }: Row, now: Date): boolean =>
  !notBefore || !notAfter || renewAt({ notBefore, notAfter }) <= now;

async function begin(ctx: Ctx, id: string): Promise<Changes> {
  const order = await ctx.acme.order(await accountAt(ctx), id);
  return { ...noOrder, step: "PUBLISH", orderedAt: ctx.now(), ...order };
}

/** The key is stored before it is registered, so that an interrupted registration finds the same account. */
async function accountAt(ctx: Ctx): Promise<AcmeAccount> {
  const id = ctx.config.ACME_DIRECTORY;
  const found = () => ctx.db.select().from(acmeAccounts).where(eq(acmeAccounts.id, id));
  let [account] = await found();
  if (!account) {
    const keySealed = ctx.secrets.seal(await ctx.acme.newKey(), `acme_accounts:${id}`);
    await ctx.db.insert(acmeAccounts).values({ id, keySealed }).onConflictDoNothing();
    [account] = await found();
  }
  if (!account) throw new Error("The account of the certificate authority was not stored");
  const key = ctx.secrets.open(account.keySealed, `acme_accounts:${id}`);
  if (account.url !== null) return { url: account.url, key };
  const url = await ctx.acme.register(key, ctx.config.ACME_EMAIL);
  await ctx.db.update(acmeAccounts).set({ url }).where(eq(acmeAccounts.id, id));
  return { url, key };
}

/** Asked only after publication, because resolvers remember that a name has no record. */
async function isVisible(ctx: Ctx, { id, challengeValue }: Row, publishedAt: Date): Promise<boolean> {
  if (ctx.now().getTime() - publishedAt.getTime() > publishedWithinMs) return true;
  const values = await ctx.dns.texts(challengeName(id)).catch((): string[] => []);
  return values.includes(challengeValue ?? "");
}

async function finalize(ctx: Ctx, row: Row, account: AcmeAccount, order: AcmeOrder): Promise<Next> {
  const { id, orderKeySealed } = row;
  if (orderKeySealed === null) return { step: "VALIDATE" };
  const key = ctx.secrets.open(orderKeySealed, `certificates.order_key:${id}`);
  const { status, reason } = await ctx.acme.state(account, order);
  if (status === "invalid") throw new AcmeError(refusalOf(reason), true);
  if (status === "ready") {
    await ctx.acme.finalize(account, order, id, key);
    return { step: "FINALIZE" };
  }
  if (status !== "valid") return "wait";
  const { chain, issuer, notBefore, notAfter } = await ctx.acme.download(account, order);
  return {
    ...noOrder,
    chain,
    keySealed: ctx.secrets.seal(key, `certificates.key:${id}`),
    issuer,
    notBefore,
    notAfter,
    toldAt: null,
    failures: 0,
    error: null,
    errorSince: null,
  };
}

const refusalOf = (reason: string | null): string =>
  `The certificate authority did not accept the proof${reason === null ? "." : `: ${reason.slice(0, 500)}`}`;

const whyLate = ({ id, publishedAt }: Row): string =>
  publishedAt
    ? "The certificate authority did not issue the certificate within six hours."
    : `The record ${challengeName(id)} could not be published within six hours; see the error of the DNS provider.`;

/** Hosts that are not connected receive them with their next hello. */
async function tellHosts(ctx: Ctx, own: string): Promise<void> {
  const untold = await ctx.db
    .select({ id: certificates.id, notAfter: certificates.notAfter })
    .from(certificates)
    .where(and(wildcardsOnly, isNotNull(certificates.chain), isNull(certificates.toldAt)))
    .limit(50);
  if (untold.length === 0) return;
  const names = untold.map(({ id }) => id);
  const connected = await ctx.db
    .select({ id: hosts.id })
    .from(hosts)
    .where(
      and(
        or(eq(hosts.status, "ACTIVE"), eq(hosts.status, "DRAINING")),
        isNull(hosts.offlineSince),
        names.includes(own) ? undefined : inArray(hosts.id, hostsOf(ctx, names)),
      ),
    );
  let missed = 0;
  await eachAlone(
    "certificates",
    connected,
    (host) =>
      ctx.hosts.certify(host.id).catch((error: unknown) => {
        missed++;
        throw error;
      }),
    10,
  );
  if (missed > 0) return;
  const now = ctx.now();
  for (const { id, notAfter } of untold)
    await ctx.db
      .update(certificates)
      .set({ toldAt: now })
      .where(and(eq(certificates.id, id), eq(certificates.notAfter, notAfter ?? new Date(0))));
  // Their hosts can be asked now whether they serve them.
  await ctx.db
    .update(domains)
    .set({ nextCheckAt: now })
    .where(and(inArray(domains.name, names), isNotNull(domains.verifiedAt)));
}

/** The query for the hosts of the sites that hold these names. */
const hostsOf = (ctx: Ctx, names: readonly string[]) =>
  ctx.db
    .select({ id: sql<Id<"host">>`coalesce(${sites.hostId}, '')` })
    .from(domains)
    .innerJoin(sites, eq(sites.id, domains.siteId))
    .where(and(inArray(domains.name, [...names]), isNotNull(domains.verifiedAt)));
