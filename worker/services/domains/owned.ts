import { and, asc, eq } from "drizzle-orm";
import { DomainName } from "../../../protocol/api/domains.ts";
import type { Ctx } from "../../ctx.ts";
import type { SiteRow } from "../../db/rows.ts";
import { domains } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { idIn, ownedWith } from "../owned.ts";
import { siteById } from "../sites/owned.ts";
import type { DomainRow } from "./view.ts";

export type OfDomain = { id: string; name: string };

/** The caller's site and its domains, oldest first. @throws AppError not_found, forbidden */
export async function siteWithDomains(
  ctx: Ctx,
  siteId: string,
): Promise<{ site: SiteRow; rows: DomainRow[] }> {
  const id = idIn("site", siteId);
  const { owned: site, rows } = await ownedWith(ctx, siteById(ctx, id), {
    rows: ctx.db.select().from(domains).where(eq(domains.siteId, id)).orderBy(asc(domains.id)),
  });
  return { site, rows };
}

/** A domain of the caller's site, by any form of its name. @throws AppError not_found, forbidden */
export async function domainOwnedBy(
  ctx: Ctx,
  { id: siteId, name }: OfDomain,
): Promise<{ site: SiteRow; row: DomainRow }> {
  const id = idIn("site", siteId);
  const stored = DomainName.safeParse(name).data ?? "";
  const {
    owned: site,
    row: [row],
  } = await ownedWith(ctx, siteById(ctx, id), {
    row: ctx.db
      .select()
      .from(domains)
      .where(and(eq(domains.siteId, id), eq(domains.name, stored))),
  });
  if (!row) throw new AppError("not_found");
  return { site, row };
}
