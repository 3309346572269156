import type { ById } from "../../../protocol/api/common.ts";
import type { SiteHealth } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../ctx.ts";
import { siteOwnedBy } from "../sites/owned.ts";
import { askHostOf } from "./ask-host.ts";

/** The site's containers as its host sees them now, each probed at this moment. */
export async function siteHealth(ctx: Ctx, { id: siteId }: ById): Promise<SiteHealth> {
  const site = await siteOwnedBy(ctx, siteId);
  const answer = await askHostOf<"health">(ctx, site, { kind: "health", siteId: site.id, port: site.port });
  return answer?.health ?? { route: "none", hostnames: [], containers: [], diskFreeMb: null };
}
