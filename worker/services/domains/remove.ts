import { eq, sql } from "drizzle-orm";
import type { DomainRemoved } from "../../../protocol/api/domains.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import type { SiteRow } from "../../db/rows.ts";
import { domains } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { domainOwnedBy, type OfDomain } from "./owned.ts";
import { queueRoutes } from "../../jobs/queue-routes.ts";
import type { DomainRow } from "./view.ts";

/** Other sites may claim the name at once; the host stops serving it when it applies the new routes. */
export async function removeDomain(ctx: Ctx, input: OfDomain): Promise<DomainRemoved> {
  const { site, row } = await domainOwnedBy(ctx, input);
  return removeRow(ctx, site, row);
}

/** Names that redirected to it are served themselves from now on. */
export async function removeRow(ctx: Ctx, site: SiteRow, row: DomainRow): Promise<DomainRemoved> {
  const {
    removed: [removed],
  } = await batch(ctx, {
    removed: ctx.db.delete(domains).where(eq(domains.id, row.id)).returning(),
    routes: queueRoutes(ctx, site.id, sql`changes() > 0`),
    redirects: ctx.db
      .update(domains)
      .set({ redirectTo: null })
      .where(sql`site_id = ${site.id} AND redirect_to = ${row.name}`),
  });
  if (!removed) throw new AppError("not_found");
  if (site.hostId) ctx.hosts.wake(site.hostId);
  return { domain: row.name, removed: true };
}
