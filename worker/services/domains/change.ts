import type { ById } from "../../../protocol/api/common.ts";
import type { DomainChange, DomainChanged } from "../../../protocol/api/domains.ts";
import type { Ctx } from "../../ctx.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { addDomain } from "./add.ts";
import { lookAt } from "./look.ts";
import { siteWithDomains } from "./owned.ts";
import { removeRow } from "./remove.ts";
import { domainView } from "./view.ts";

/** Adds, removes or verifies a custom domain. @throws AppError conflict with the reason why it is not verified */
export async function changeDomain(
  ctx: Ctx,
  { id, domain: change }: ById & { domain: DomainChange },
): Promise<DomainChanged> {
  const name = typeof change === "string" ? change : "verify" in change ? change.verify : change.remove;
  const { site, rows } = await siteWithDomains(ctx, id);
  const row = rows.find((one) => one.name === name);
  if (typeof change === "string")
    return domainView(ctx, site, row ?? (await addDomain(ctx, site, { domain: name }, rows)));
  if (!row) throw new AppError("not_found");
  if ("remove" in change) return removeRow(ctx, site, row);
  const seen = await lookAt(ctx, site, row);
  if (!seen) throw new AppError("not_found");
  if (!seen.verifiedAt) throw conflict(seen.problems[0]?.message ?? "The domain is not verified.");
  return domainView(ctx, site, seen);
}
