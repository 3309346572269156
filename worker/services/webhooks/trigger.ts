import { eq, sql } from "drizzle-orm";
import type { SiteStatus } from "../../../protocol/states.ts";
import type { Ctx, Db } from "../../context.ts";
import { param } from "../../db/param.ts";
import { sites } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { pushSkips, type PushEvent } from "../../domain/push-event.ts";
import { sha256Hex } from "../../domain/tokens.ts";
import { deploymentRequest, refuseDeployment } from "../sites/deploy.ts";

export type Triggered =
  | { skipped: true; status: SiteStatus }
  | { skipped: false; status: SiteStatus; deploymentId: string };

const segmentPattern = /^whk_[0-9a-z][0-9A-Za-z]{43}$/;

const which = eq(sites.webhookHash, param("webhookHash"));
/** `pushSkips` where the site moves: of no branch, of the one pushed, of another. */
const deploys = sql`CASE WHEN branch IS NULL THEN ${param("deploysDefault")}
  WHEN branch = ${param("pushed")} THEN ${param("deploysPushed")} ELSE ${param("deploysOther")} END`;
const found = (db: Db) =>
  db.select({ id: sites.id, status: sites.status, branch: sites.branch }).from(sites).where(which);
const request = deploymentRequest(which, deploys);

/** The address is the credential: whoever posts to it starts a deployment from the current source. One round trip to D1. */
export async function triggerWebhook(ctx: Ctx, segment: string, event: PushEvent): Promise<Triggered> {
  if (!segmentPattern.test(segment)) throw new AppError("not_found");
  const pushed = event.ref?.replace(/^refs\/heads\//, "") ?? "";
  const deploysOf = (branch: string | null) => Number(!pushSkips(event, branch));
  const given = {
    webhookHash: sha256Hex(segment),
    pushed,
    deploysDefault: deploysOf(null),
    deploysPushed: deploysOf(pushed),
    deploysOther: deploysOf(`${pushed}/other`),
  };
  const { statements, accepted } = request(ctx, given, "webhook");
  const [[site], ...answers] = await ctx.db.batch([ctx.hot(found, given), ...statements]);
  if (!site || site.status === "DELETING") throw new AppError("not_found");
  if (pushSkips(event, site.branch)) return { skipped: true, status: site.status };
  const done = accepted(answers);
  if (!done) return refuseDeployment(ctx, site);
  return { skipped: false, status: done.status, deploymentId: done.deploymentId };
}
