import type { Domain } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../context.ts";
import type { domains, sites } from "../../db/schema.ts";
import { siteAddress } from "../../domain/slug.ts";

export type DomainRow = typeof domains.$inferSelect;

export const challengeName = (domain: string): string => `_berth-challenge.${domain}`;

export const domainView = (ctx: Ctx, site: typeof sites.$inferSelect, row: DomainRow): Domain => ({
  id: row.id,
  domain: row.name,
  status: row.verifiedAt ? "verified" : "pending",
  record: { type: "TXT", name: challengeName(row.name), value: row.challenge },
  target: siteAddress(ctx.config.SITES_ORIGIN, site.slug).hostname,
  verifiedAt: row.verifiedAt?.toISOString() ?? null,
  createdAt: row.createdAt.toISOString(),
});
