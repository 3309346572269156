import { and, asc, eq, sql } from "drizzle-orm";
import type { DatabaseCreate, DatabaseCreated } from "../../../protocol/api/databases.ts";
import { accountOf, type Ctx } from "../../context.ts";
import { databases, invoices, packs } from "../../db/schema.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { databaseEngines, databaseNameOf } from "../../domain/database-engines.ts";
import { addDays, invoiceDueDays, termPriceCents } from "../../domain/pricing.ts";
import { mintToken } from "../../domain/tokens.ts";
import { sealAdminPassword, sealNewPassword } from "./logins.ts";

/** A PENDING database and its unpaid invoice; nothing is provisioned. */
export async function createDatabase(ctx: Ctx, input: DatabaseCreate): Promise<DatabaseCreated> {
  const accountId = accountOf(ctx);
  const [[pack], [taken]] = await ctx.db.batch([
    ctx.db
      .select()
      .from(packs)
      .where(
        and(
          eq(packs.kind, "database"),
          eq(packs.active, true),
          input.packId ? sql`${packs.id} = ${input.packId}` : sql`1`,
        ),
      )
      .orderBy(asc(packs.priceCents), asc(packs.id))
      .limit(1),
    ctx.db
      .select({ id: databases.id })
      .from(databases)
      .where(and(eq(databases.accountId, accountId), eq(databases.name, input.name))),
  ]);
  if (!pack) throw invalid("packId", "no active database pack has this id");
  const nameTaken = () => conflict(`You already have a database named ${input.name}: choose another name.`);
  if (taken) throw nameTaken();

  const now = ctx.now();
  const id = ctx.newId("database");
  const invoiceId = ctx.newId("invoice");
  const invoiceToken = mintToken("inv", ctx.random(32));
  const amountCents = termPriceCents(pack.priceCents, input.billingTerm, pack.discounts);
  const months = `${input.billingTerm} ${input.billingTerm === 1 ? "month" : "months"}`;
  const description = `Database ${input.name} (${input.type}): ${pack.name}, ${months}`;
  const [created] = await ctx.db.batch([
    ctx.db
      .insert(databases)
      .values({
        id,
        accountId,
        name: input.name,
        type: input.type,
        status: "PENDING",
        image: databaseEngines[input.type].image,
        packId: pack.id,
        billingTerm: input.billingTerm,
        region: input.region,
        databaseName: databaseNameOf(input.name, ctx.random(8)),
        adminPasswordSealed: sealAdminPassword(ctx, { id }),
        passwordSealed: sealNewPassword(ctx, { id }, 1),
        createdAt: now,
        updatedAt: now,
      })
      .onConflictDoNothing({ target: [databases.accountId, databases.name] })
      .returning({ id: databases.id }),
    // Only beside its database: a name taken in the meantime leaves nothing.
    ctx.db.insert(invoices).select(
      ctx.db
        .select({
          id: sql`${invoiceId}`.as("id"),
          token: sql`${invoiceToken}`.as("token"),
          accountId: databases.accountId,
          kind: sql`'database'`.as("kind"),
          status: sql`'unpaid'`.as("status"),
          amountCents: sql`${amountCents}`.as("amount_cents"),
          currency: sql`${pack.currency}`.as("currency"),
          lines: sql`${JSON.stringify([{ description, amountCents }])}`.as("lines"),
          resourceId: databases.id,
          termMonths: databases.billingTerm,
          packId: sql`NULL`.as("pack_id"),
          periodEnd: sql`NULL`.as("period_end"),
          createdAt: databases.createdAt,
          dueAt: sql`${addDays(now, invoiceDueDays).getTime()}`.as("due_at"),
          paidAt: sql`NULL`.as("paid_at"),
          settlementMark: sql`NULL`.as("settlement_mark"),
        })
        .from(databases)
        .where(eq(databases.id, id)),
    ),
  ]);
  if (created.length === 0) throw nameTaken();
  return { invoiceToken, invoiceId, databaseId: id };
}
