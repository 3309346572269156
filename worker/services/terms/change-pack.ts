import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, or, sql } from "drizzle-orm";
import { redisDataShare } from "../../../protocol/agent/jobs.ts";
import type { PackChange, PackChanged } from "../../../protocol/api/packs.ts";
import type { BillingTermMonths } from "../../../protocol/states.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import type { PackRow, DatabaseRow, SiteRow } from "../../db/rows.ts";
import { invoices, packs, siteVolumes } from "../../db/schema.ts";
import { AppError, conflict, invalid } from "../../domain/app-error.ts";
import { tooFullFor } from "../../domain/disk-notice.ts";
import { addDays, billingDayOf, chargedCents, proratedCents, termPriceCents } from "../../domain/pricing.ts";
import { refuseTooManyReplicas } from "../../domain/replicas.ts";
import { dayOf } from "../../domain/times.ts";
import { mintToken } from "../../domain/tokens.ts";
import { askServer } from "../databases/ask-host.ts";
import { databaseById } from "../databases/owned.ts";
import { idIn, requireOwned } from "../owned.ts";
import { refuseUnpaid } from "../refuse-unpaid.ts";
import { siteById } from "../sites/owned.ts";
import { currentRunOf } from "../volumes/list.ts";
import { applyChange } from "../../billing/terms/apply-change.ts";
import { issueRenewal } from "../../billing/terms/issue.ts";
import { noRoomForPack, roomForPack } from "../../billing/terms/room-for-pack.ts";
import { tableOf, wordOf, type Termed } from "../../db/resource.ts";
import { beingPaid, inService, renewalOf } from "../../billing/terms/resource.ts";

/** An unpaid pack change is cancelled after this time. */
const changeDueDays = 3;

/** @throws AppError not_found, forbidden */
type Allow = typeof requireOwned;

export async function changePackOfSite(
  ctx: Ctx,
  { id: siteId, ...wanted }: ById & PackChange,
  allow: Allow = requireOwned,
): Promise<PackChanged> {
  const id = idIn("site", siteId);
  const {
    found: [found],
    packRows,
    run: [run],
    renewals,
    volumes,
  } = await batch(ctx, {
    found: siteById(ctx, id),
    packRows: packsOf(ctx, "sites", id, wanted),
    run: currentRunOf(ctx, id),
    renewals: renewalsOf(ctx, id),
    volumes: ctx.db
      .select({ name: siteVolumes.name })
      .from(siteVolumes)
      .where(eq(siteVolumes.siteId, id))
      .limit(1),
  });
  const site = allow(ctx, found);
  await refuseUnpaid(ctx, site);
  const { old, next } = chosenOf("sites", site, packRows, wanted);
  refuseTooManyReplicas("packId", Math.max(site.replicas, run?.run?.replicas ?? 1), next.memoryMb);
  if (next.diskGb < old.diskGb && volumes.length > 0) await refuseTooFull(ctx, site, next);
  return changePack(ctx, "sites", site, { old, next, wanted, renewal: renewals[0] });
}

export async function changePackOfDatabase(
  ctx: Ctx,
  { id: databaseId, ...wanted }: ById & PackChange,
  allow: Allow = requireOwned,
): Promise<PackChanged> {
  const id = idIn("database", databaseId);
  const {
    found: [found],
    packRows,
    renewals,
  } = await batch(ctx, {
    found: databaseById(ctx, id),
    packRows: packsOf(ctx, "databases", id, wanted),
    renewals: renewalsOf(ctx, id),
  });
  const database = allow(ctx, found);
  await refuseUnpaid(ctx, database);
  const chosen = chosenOf("databases", database, packRows, wanted);
  const refusal = chosen.next.diskGb < chosen.old.diskGb && tooFullFor(database, chosen.next);
  if (refusal) throw conflict(refusal);
  const isInMemory = database.type === "redis" && database.status === "RUNNING";
  if (isInMemory && chosen.next.memoryMb < chosen.old.memoryMb)
    await refuseTooLarge(ctx, database, chosen.next);
  return changePack(ctx, "databases", database, { ...chosen, wanted, renewal: renewals[0] });
}

const packsOf = (ctx: Ctx, kind: Termed, id: string, wanted: PackChange) =>
  ctx.db
    .select()
    .from(packs)
    .where(
      or(
        eq(packs.id, sql`(SELECT pack_id FROM ${tableOf(kind)} WHERE id = ${id})`),
        // Chosen while it was on offer.
        eq(packs.id, sql`(SELECT next_pack_id FROM ${tableOf(kind)} WHERE id = ${id})`),
        and(eq(packs.kind, wordOf(kind)), eq(packs.active, true), sql`${packs.id} = ${wanted.packId}`),
      ),
    );

const renewalsOf = (ctx: Ctx, resourceId: string) =>
  ctx.db
    .select({ token: invoices.token })
    .from(invoices)
    .where(
      and(eq(invoices.resourceId, resourceId), eq(invoices.kind, "renewal"), eq(invoices.status, "unpaid")),
    );

function chosenOf(kind: Termed, row: SiteRow | DatabaseRow, found: PackRow[], wanted: PackChange) {
  const old = found.find(({ id }) => id === row.packId);
  const next = found.find(({ id }) => id === wanted.packId);
  if (!old) throw new Error(`There is no pack ${row.packId}`);
  if (!next) throw invalid("packId", `no active ${wordOf(kind)} pack has this id`);
  return { old, next };
}

/** @throws AppError conflict if the volumes exceed the pack's disk space, or their size is unknown */
async function refuseTooFull(ctx: Ctx, { id, hostId }: SiteRow, next: PackRow): Promise<void> {
  if (hostId === null) return;
  const answer = await ctx.questions.ask(hostId, { kind: "volumes", siteId: id });
  if (answer.kind !== "volumes")
    throw conflict("The site's host cannot measure the volumes right now. Try again when it is up.");
  const usedMb = answer.volumes.reduce((sum, { sizeMb }) => sum + (sizeMb ?? 0), 0);
  if (usedMb > next.diskGb * 1024)
    throw conflict(
      `The site's volumes use ${Math.ceil(usedMb)} MB, but ${next.name} has only ${next.diskGb * 1024} MB. Remove files first, or choose a larger pack.`,
    );
}

/** @throws AppError conflict if Redis could not load its data in the pack's memory, or does not say how large it is */
async function refuseTooLarge(ctx: Ctx, database: DatabaseRow, next: PackRow): Promise<void> {
  const { insight } = await askServer<"insight">(ctx, database, (server) => ({ kind: "insight", ...server }));
  const roomMb = Math.floor(next.memoryMb * redisDataShare);
  if (insight.sizeMb > roomMb)
    throw conflict(
      `The database holds ${Math.ceil(insight.sizeMb)} MB in memory, and ${next.name} has room for ${roomMb} MB. Delete keys first, or choose a larger pack.`,
    );
}

type Change = { old: PackRow; next: PackRow; wanted: PackChange; renewal: { token: string } | undefined };

/**
 * An upgrade is invoiced for the rest of the term and takes effect on payment; until then its memory is reserved on a
 * host. If the term is already being renewed, and for any other pack, the change takes effect at the renewal. A single
 * batch decides.
 */
async function changePack(
  ctx: Ctx,
  kind: Termed,
  row: SiteRow | DatabaseRow,
  { old, next, wanted, renewal }: Change,
): Promise<PackChanged> {
  const now = ctx.now();
  const paidUntil = row.paidUntil;
  if (!paidUntil || paidUntil <= now)
    throw new AppError("payment_required", renewal ? { invoiceToken: renewal.token } : {});
  const term = row.billingTerm as BillingTermMonths;
  const [oldCents, nextCents] = [old, next].map((pack) =>
    termPriceCents(pack.priceCents, term, pack.discounts),
  );
  const isDearer = next.priceCents > old.priceCents && renewal === undefined;
  const left = { months: term, paidUntil, billingDay: billingDayOf(row) };
  const amountCents = chargedCents(proratedCents([oldCents ?? 0, nextCents ?? 0], left, now));
  const isFree = isDearer && amountCents === 0;
  const isSame = next.id === old.id;

  const mark = ctx.newMark();
  const changed = sql`(SELECT mark FROM ${tableOf(kind)} WHERE id = ${row.id}) = ${mark}`;
  const invoiceId = ctx.newId("invoice");
  const invoiceToken = mintToken("inv", ctx.random(32));
  const until = dayOf(paidUntil);
  const description = `${kind === "sites" ? "Site" : "Database"} ${row.name}: from ${old.name} to ${next.name} until ${until}`;
  const dueAt = Math.min(addDays(now, changeDueDays).getTime(), paidUntil.getTime());
  const nextTerm = wanted.billingTerm ?? (isSame ? null : row.nextBillingTerm) ?? row.billingTerm;
  const nextBillingTerm = nextTerm === row.billingTerm ? null : nextTerm;
  const place = roomForPack(kind, sql`${next.memoryMb}`);
  const { changedRow } = await batch(ctx, {
    change: ctx.statement(sql`
      UPDATE ${tableOf(kind)} AS r SET next_pack_id = ${isSame ? null : next.id},
        next_billing_term = ${nextBillingTerm}, mark = ${mark}, updated_at = ${now.getTime()}
        ${isFree ? place.set : sql``}
      WHERE id = ${row.id} AND status IN ${inService} AND pack_id = ${old.id} AND paid_until = ${paidUntil.getTime()}
        AND next_pack_at IS NULL AND ${place.fits}
        AND ${renewal ? sql`EXISTS` : sql`NOT EXISTS`} (SELECT 1 FROM ${renewalOf(row.id)})
        AND NOT EXISTS (SELECT 1 FROM invoices i WHERE i.resource_id = r.id AND i.kind IN ('renewal', 'change')
          AND i.status = 'unpaid' AND ${beingPaid(sql`i.id`)})`),
    voided: ctx.statement(sql`
      UPDATE invoices SET status = 'void'
      WHERE resource_id = ${row.id} AND kind IN ('renewal', 'change') AND status = 'unpaid' AND ${changed}`),
    invoice: ctx.statement(sql`
      INSERT INTO invoices (id, token, account_id, kind, status, amount_cents, currency, lines, resource_id, pack_id, period_end,
        created_at, due_at)
      SELECT ${invoiceId}, ${invoiceToken}, r.account_id, 'change', 'unpaid', ${amountCents}, ${next.currency},
        ${JSON.stringify([{ description, amountCents }])}, r.id, ${next.id}, r.paid_until, ${now.getTime()}, ${dueAt}
      FROM ${tableOf(kind)} r WHERE r.id = ${row.id} AND r.mark = ${mark} AND ${isDearer && !isFree}`),
    changedRow: ctx.db
      .select({ id: sql<string>`${row.id}` })
      .from(packs)
      .where(and(eq(packs.id, old.id), changed)),
    applied: isFree ? applyChange(ctx, kind, row.id, mark, sql`r.mark = ${mark}`) : undefined,
  });
  if (changedRow.length !== 1) throw await refusal(ctx, kind, row, next);
  ctx.hosts.wake(row.hostId);
  const invoice = isDearer && !isFree ? { invoiceToken, invoiceId, amountCents } : await reissue();
  return {
    id: row.id,
    packId: isFree ? next.id : old.id,
    nextPackId: isFree || isSame ? null : next.id,
    nextBillingTerm,
    takesEffect: isFree
      ? "now"
      : isDearer
        ? "on_payment"
        : isSame && nextBillingTerm === null
          ? "never"
          : "at_renewal",
    ...invoice,
  };

  /** Voids the existing renewal invoice, which has the old price. */
  async function reissue() {
    if (!renewal) return { invoiceToken: null, invoiceId: null, amountCents: null };
    await issueRenewal(ctx, kind, { ...row, paidUntil: paidUntil?.getTime() ?? 0, suspendedAt: null });
    const [open] = await ctx.db.all<{ invoiceToken: string; invoiceId: string; amountCents: number }>(
      sql`SELECT token AS invoiceToken, id AS invoiceId, amount_cents AS amountCents FROM ${renewalOf(row.id)}`,
    );
    return open ?? { invoiceToken: null, invoiceId: null, amountCents: null };
  }
}

async function refusal(ctx: Ctx, kind: Termed, row: SiteRow | DatabaseRow, next: PackRow): Promise<AppError> {
  const [now] = await ctx.db.all<{
    status: string;
    nextPackAt: number | null;
    isPaid: number;
    fits: number;
  }>(sql`
    SELECT r.status, r.next_pack_at AS nextPackAt, ${roomForPack(kind, sql`${next.memoryMb}`).fits} AS fits, EXISTS (
      SELECT 1 FROM invoices i WHERE i.resource_id = r.id AND i.kind IN ('renewal', 'change') AND i.status = 'unpaid'
        AND ${beingPaid(sql`i.id`)}) AS isPaid
    FROM ${tableOf(kind)} r WHERE r.id = ${row.id}`);
  const what = wordOf(kind);
  if (!now || now.status === "DELETING")
    return conflict(`A ${what} that is being deleted cannot change its pack.`);
  if (now.isPaid === 1)
    return conflict(
      "The open invoice is being paid. Check it, and change the pack once it is paid or after an hour.",
    );
  if (now.nextPackAt !== null)
    return conflict(
      `Another pack is already paid for and starts on ${dayOf(new Date(now.nextPackAt))}. Change it after that.`,
    );
  if (now.fits === 0) return noRoomForPack(kind, next.memoryMb);
  return conflict(`The ${what} was changed concurrently. Check it, then try again.`);
}
