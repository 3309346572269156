import { eq, sql } from "drizzle-orm";
import type { SiteStatus } from "../../../protocol/states.ts";
import type { Ctx } from "../../context.ts";
import { sites } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { pushSkips, type PushEvent } from "../../domain/push-event.ts";
import { sha256Hex } from "../../domain/tokens.ts";
import { refuseDeployment, requestDeployment } from "../sites/deploy.ts";

export type Triggered =
  | { skipped: true; status: SiteStatus }
  | { skipped: false; status: SiteStatus; deploymentId: string };

const segmentPattern = /^whk_[0-9a-z][0-9A-Za-z]{43}$/;

/** The address is the credential: whoever posts to it starts a deployment from the current source. One round trip to D1. */
export async function triggerWebhook(ctx: Ctx, segment: string, event: PushEvent): Promise<Triggered> {
  if (!segmentPattern.test(segment)) throw new AppError("not_found");
  const which = eq(sites.webhookHash, sha256Hex(segment));
  const { statements, accepted } = requestDeployment(ctx, which, "webhook", { only: deploys(event) });
  const [[site], ...answers] = await ctx.db.batch([
    ctx.db.select({ id: sites.id, status: sites.status, branch: sites.branch }).from(sites).where(which),
    ...statements,
  ]);
  if (!site || site.status === "DELETING") throw new AppError("not_found");
  if (pushSkips(event, site.branch)) return { skipped: true, status: site.status };
  const done = accepted(answers);
  if (!done) return refuseDeployment(ctx, site);
  return { skipped: false, status: done.status, deploymentId: done.deploymentId };
}

/** `pushSkips` where the site moves: of no branch, of the one pushed, of another. */
function deploys(event: PushEvent) {
  const pushed = event.ref?.replace(/^refs\/heads\//, "") ?? "";
  const deploysOf = (branch: string | null) => (pushSkips(event, branch) ? 0 : 1);
  return sql`CASE WHEN branch IS NULL THEN ${deploysOf(null)} WHEN branch = ${pushed} THEN ${deploysOf(pushed)}
    ELSE ${deploysOf(`${pushed}/other`)} END`;
}
