import type { Domain } from "../../../protocol/api/domains.ts";
import type { Ctx } from "../../ctx.ts";
import { domainOwnedBy, type OfDomain } from "./owned.ts";
import { domainView } from "./view.ts";

/** The domain as it was last looked at. */
export async function getDomain(ctx: Ctx, input: OfDomain): Promise<Domain> {
  const { site, row } = await domainOwnedBy(ctx, input);
  return domainView(ctx, site, row);
}
