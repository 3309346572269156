import { and, desc, eq, inArray } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { deployments } from "../../db/schema.ts";

/** The query of when a site last began to run on another host: what its host keeps goes back no further. */
export const lastMove = (ctx: Ctx, siteId: Id<"site">) =>
  ctx.db
    .select({ at: deployments.startedAt })
    .from(deployments)
    .where(
      and(
        eq(deployments.siteId, siteId),
        eq(deployments.trigger, "move"),
        inArray(deployments.status, ["LIVE", "SUPERSEDED"]),
      ),
    )
    .orderBy(desc(deployments.number))
    .limit(1);

export const movedDetail =
  "The site moved to another host, as its host was emptied. What it wrote, used and met before was kept there and went with it; the logs of its deployments stay.";
