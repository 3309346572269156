import { and, eq } from "drizzle-orm";
import type { DatabaseCreate, DatabaseCreated } from "../../../protocol/api/databases.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { databases } from "../../db/schema.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { databaseEngines, databaseNameOf } from "../../domain/database-engines.ts";
import { largestHost, refuseTooLarge } from "../hosts/largest.ts";
import { refuseUnknownRegion, regionsOfHosts } from "../hosts/regions.ts";
import { firstInvoice } from "../../billing/invoices/first.ts";
import { neverPaid, refuseMoreUnpaid } from "../../billing/invoices/never-paid.ts";
import { packOffered } from "../packs/offered.ts";
import { sealAdminPassword, sealNewPassword } from "../../jobs/databases/logins.ts";

/** Creates a PENDING database and its unpaid invoice; nothing is provisioned yet. */
export async function createDatabase(ctx: Ctx, input: DatabaseCreate): Promise<DatabaseCreated> {
  const accountId = accountOf(ctx);
  const {
    pack: [pack],
    taken: [taken],
    regions,
    largest: [largest],
    unpaid,
  } = await batch(ctx, {
    pack: packOffered(ctx, "database", input.packId),
    taken: ctx.db
      .select({ id: databases.id })
      .from(databases)
      .where(and(eq(databases.accountId, accountId), eq(databases.name, input.name))),
    regions: regionsOfHosts(ctx),
    largest: largestHost(ctx, input.region),
    unpaid: neverPaid(ctx, accountId),
  });
  if (!pack) throw invalid("packId", "no active database pack has this id");
  refuseUnknownRegion("region", input.region, regions);
  refuseTooLarge(pack, input.region, largest);
  const nameTaken = () => conflict(`You already have a database named ${input.name}. Choose another name.`);
  if (taken) throw nameTaken();
  refuseMoreUnpaid(unpaid);

  const now = ctx.now();
  const id = ctx.newId("database");
  const invoice = firstInvoice(ctx, {
    id,
    what: `Database ${input.name}, ${databaseEngines[input.type].name}`,
    pack,
    billingTerm: input.billingTerm,
    createdAt: now,
  });
  const { created } = await batch(ctx, {
    created: ctx.db
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
    invoice: invoice.statement,
  });
  if (created.length === 0) throw nameTaken();
  const { invoiceToken, invoiceId } = invoice;
  return { invoiceToken, invoiceId, databaseId: id };
}
