import type { Domain, DomainChange } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../context.ts";
import { siteOwnedBy } from "../sites/owned.ts";
import { addDomain } from "./add.ts";
import { removeDomain } from "./remove.ts";
import { verifyDomain } from "./verify.ts";

/** Add, remove or verify a site's own domain. */
export async function changeDomain(
  ctx: Ctx,
  siteId: string,
  change: DomainChange,
): Promise<Domain | { domain: string; removed: true }> {
  const site = await siteOwnedBy(ctx, siteId);
  if (typeof change === "string") return addDomain(ctx, site, change);
  if ("verify" in change) return verifyDomain(ctx, site, change.verify);
  return removeDomain(ctx, site, change.remove);
}
