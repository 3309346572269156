import { eq, sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { domains } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import type { SiteRow } from "../../db/rows.ts";
import type { DomainRow } from "./view.ts";
import { queueRoutes } from "./queue-routes.ts";

/** Other sites may claim the name at once; the host stops serving it when it applies the new routes. */
export async function removeDomain(
  ctx: Ctx,
  site: SiteRow,
  row: DomainRow,
): Promise<{ domain: string; removed: true }> {
  const {
    removed: [removed],
  } = await batch(ctx, {
    removed: ctx.db.delete(domains).where(eq(domains.id, row.id)).returning(),
    routes: queueRoutes(ctx, site.id, sql`changes() > 0`),
  });
  if (!removed) throw new AppError("not_found");
  if (site.hostId) ctx.hosts.wake(site.hostId);
  return { domain: row.name, removed: true };
}
