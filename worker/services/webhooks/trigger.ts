import { eq } from "drizzle-orm";
import type { SiteStatus } from "../../../protocol/states.ts";
import type { Ctx } from "../../context.ts";
import { sites } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { pushSkips, type PushEvent } from "../../domain/push-event.ts";
import { sha256Hex } from "../../domain/tokens.ts";
import { deploySite } from "../sites/deploy.ts";

export type Triggered =
  | { skipped: true; status: SiteStatus }
  | { skipped: false; status: SiteStatus; deploymentId: string };

const segmentPattern = /^whk_[0-9a-z][0-9A-Za-z]{43}$/;

/** The address is the credential: whoever posts to it starts a deployment from the current source. */
export async function triggerWebhook(ctx: Ctx, segment: string, event: PushEvent): Promise<Triggered> {
  if (!segmentPattern.test(segment)) throw new AppError("not_found");
  const [site] = await ctx.db
    .select()
    .from(sites)
    .where(eq(sites.webhookHash, sha256Hex(segment)));
  if (!site || site.status === "DELETING") throw new AppError("not_found");
  if (pushSkips(event, site.branch)) return { skipped: true, status: site.status };
  const { status, deploymentId } = await deploySite(ctx, site, "webhook");
  return { skipped: false, status, deploymentId };
}
