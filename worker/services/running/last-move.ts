import { and, desc, eq, inArray } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { deployments } from "../../db/schema.ts";

/** The query for when a site last started on another host, the earliest time that its current host has data for. */
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
  "The site moved to another host because its host was drained. Earlier logs, metrics and events were stored on the previous host and are gone; deployment logs are kept.";
