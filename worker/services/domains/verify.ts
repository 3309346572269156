import type { Domain } from "../../../protocol/api/domains.ts";
import type { Ctx } from "../../ctx.ts";
import { AppError } from "../../domain/app-error.ts";
import { lookAt } from "./look.ts";
import { domainOwnedBy, type OfDomain } from "./owned.ts";
import { domainView } from "./view.ts";

/** Looks at the domain now, and answers what was found. */
export async function verifyDomain(ctx: Ctx, input: OfDomain): Promise<Domain> {
  const { site, row } = await domainOwnedBy(ctx, input);
  // Whoever asks is watching: it is looked at often again.
  const seen = await lookAt(ctx, site, { ...row, looks: 0 });
  if (!seen) throw new AppError("not_found");
  return domainView(ctx, site, seen);
}
