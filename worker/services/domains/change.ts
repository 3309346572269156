import type { ById } from "../../../protocol/api/common.ts";
import { and, count, eq } from "drizzle-orm";
import type { Domain, DomainChange } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { domains } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { requireOwned } from "../owned.ts";
import { siteById, siteIdOf } from "../sites/owned.ts";
import { addDomain } from "./add.ts";
import { removeDomain } from "./remove.ts";
import { holderOf, verifyDomain } from "./verify.ts";
import { domainView } from "./view.ts";

/** Adds, removes or verifies a custom domain. */
export async function changeDomain(
  ctx: Ctx,
  { id: siteId, domain: change }: ById & { domain: DomainChange },
): Promise<Domain | { domain: string; removed: true }> {
  const id = siteIdOf(siteId);
  const name = typeof change === "string" ? change : "verify" in change ? change.verify : change.remove;
  const {
    found: [found],
    row: [row],
    domains: [{ total } = { total: 0 }],
    holder: [holder],
  } = await batch(ctx, {
    found: siteById(ctx, id),
    row: ctx.db
      .select()
      .from(domains)
      .where(and(eq(domains.siteId, id), eq(domains.name, name))),
    domains: ctx.db.select({ total: count() }).from(domains).where(eq(domains.siteId, id)),
    holder: holderOf(ctx, name),
  });
  const site = requireOwned(ctx, found);
  if (typeof change === "string") return row ? domainView(ctx, site, row) : addDomain(ctx, site, name, total);
  if (!row) throw new AppError("not_found");
  return "verify" in change ? verifyDomain(ctx, site, row, holder) : removeDomain(ctx, site, row);
}
