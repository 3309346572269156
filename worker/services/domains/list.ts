import type { ById } from "../../../protocol/api/common.ts";
import type { DomainList } from "../../../protocol/api/domains.ts";
import type { Ctx } from "../../ctx.ts";
import { siteWithDomains } from "./owned.ts";
import { domainView } from "./view.ts";

/** All domains of the site, oldest first. */
export async function listDomains(ctx: Ctx, { id }: ById): Promise<DomainList> {
  const { site, rows } = await siteWithDomains(ctx, id);
  return { data: rows.map((row) => domainView(ctx, site, row)) };
}
