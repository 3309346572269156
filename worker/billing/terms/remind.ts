import { sql, type SQL } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { addDays } from "../../domain/pricing.ts";
import { termMail, type Occasion } from "../../domain/term-mails.ts";
import { keepSuspendedDays, warnDays } from "../../domain/terms.ts";
import { queueMail } from "../../mails/queue.ts";
import { openRenewal } from "./renewal-link.ts";
import { tableOf, termed, wordOf, type Termed } from "../../db/resource.ts";
import { inService, ofSuspended, selectDue, type TermRow } from "./resource.ts";

/** The mail id of the deletion warning for `r`. */
export const warningOf = sql`'deletion:' || r.id || ':' || r.suspended_at`;

const isQueued = (id: SQL): SQL => sql`EXISTS (SELECT 1 FROM mails WHERE id = ${id})`;

/** Notifies owners when a term is over, and a week before a suspended resource may be deleted. */
export async function remindOwners(ctx: Ctx): Promise<void> {
  const now = ctx.now();
  const warnFrom = addDays(now, warnDays - keepSuspendedDays).getTime();
  const ended = sql`'ended:' || r.id || ':' || r.paid_until`;
  for (const kind of termed) {
    await remind(
      ctx,
      kind,
      "ended",
      ended,
      sql`+r.status IN ${inService} AND r.paid_until <= ${now.getTime()}`,
    );
    await remind(
      ctx,
      kind,
      "deletion",
      warningOf,
      sql`r.status = 'SUSPENDED' AND r.suspended_at <= ${warnFrom} AND NOT ${ofSuspended}`,
    );
  }
}

async function remind(ctx: Ctx, kind: Termed, occasion: Occasion, id: SQL, due: SQL): Promise<void> {
  for (const row of await ctx.db.all<TermRow>(selectDue(kind, sql`${due} AND NOT ${isQueued(id)}`))) {
    const { accountId, name } = row;
    const renewal = await openRenewal(ctx, row.id);
    const mail = termMail(occasion, {
      what: wordOf(kind),
      name,
      paidUntil: new Date(row.paidUntil),
      payUrl: renewal?.link ?? null,
      issuedAt: renewal?.issuedAt ?? ctx.now(),
    });
    const mailId = `${occasion}:${row.id}:${occasion === "ended" ? row.paidUntil : row.suspendedAt}`;
    const still = sql`EXISTS (SELECT 1 FROM ${tableOf(kind)} r WHERE r.id = ${row.id} AND ${due})`;
    await ctx.db.batch([queueMail(ctx, { id: mailId, accountId, ...mail }, still)]);
  }
}
