import { and, eq } from "drizzle-orm";
import { DomainName } from "../../../protocol/api/domains.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import type { SiteRow } from "../../db/rows.ts";
import { domains } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { requireOwned } from "../owned.ts";
import { siteById, siteIdOf } from "../sites/owned.ts";
import type { DomainRow } from "./view.ts";

export type OfDomain = { id: string; name: string };

/** A domain of the caller's site, by any form of its name. @throws AppError not_found, forbidden */
export async function domainOwnedBy(
  ctx: Ctx,
  { id: siteId, name }: OfDomain,
): Promise<{ site: SiteRow; row: DomainRow }> {
  const id = siteIdOf(siteId);
  const stored = DomainName.safeParse(name).data ?? "";
  const {
    found: [found],
    row: [row],
  } = await batch(ctx, {
    found: siteById(ctx, id),
    row: ctx.db
      .select()
      .from(domains)
      .where(and(eq(domains.siteId, id), eq(domains.name, stored))),
  });
  const site = requireOwned(ctx, found);
  if (!row) throw new AppError("not_found");
  return { site, row };
}
