import type { Domain } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../ctx.ts";
import type { domains, sites } from "../../db/schema.ts";
import { siteAddress } from "../../domain/slug.ts";

export type DomainRow = typeof domains.$inferSelect;
/** The columns of the public representation. */
type Shown = Pick<DomainRow, "name" | "challenge" | "verifiedAt" | "createdAt"> & { id: string };

export const challengeName = (domain: string): string => `_berth-challenge.${domain}`;

export const domainView = (ctx: Ctx, site: Pick<typeof sites.$inferSelect, "slug">, row: Shown): Domain => ({
  id: row.id,
  domain: row.name,
  status: row.verifiedAt ? "verified" : "pending",
  record: { type: "TXT", name: challengeName(row.name), value: row.challenge },
  target: siteAddress(ctx.config.SITES_ORIGIN, site.slug).hostname,
  verifiedAt: row.verifiedAt?.toISOString() ?? null,
  createdAt: row.createdAt.toISOString(),
});
