import type { ById } from "../../../protocol/api/common.ts";
import type { SiteActionAccepted } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../ctx.ts";
import { deleteSite } from "../../jobs/sites/remove.ts";
import { siteOwnedBy } from "./owned.ts";

export const removeSite = async (ctx: Ctx, { id: siteId }: ById): Promise<SiteActionAccepted> =>
  deleteSite(ctx, await siteOwnedBy(ctx, siteId));
