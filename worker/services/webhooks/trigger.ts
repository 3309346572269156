import { inArray, sql } from "drizzle-orm";
import type { SiteStatus } from "../../../protocol/states.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { insertActivity } from "../../db/insert-activity.ts";
import { param } from "../../db/param.ts";
import { sites } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { pushSkips, type PushEvent } from "../../domain/push-event.ts";
import { earlierWebhookHash, isOwnWebhook, webhookHash, webhookPattern } from "../../domain/tokens.ts";
import { tokenKeys } from "../../config.ts";
import { deploymentRequest, refuseDeployment } from "../sites/deploy.ts";

type Triggered =
  | { skipped: true; status: SiteStatus }
  | { skipped: false; status: SiteStatus; deploymentId: string };

const which = sql`${sites.webhookHash} IN (${param("webhookHash")}, ${param("earlierHash")})`;
/** `pushSkips` in SQL: for a site without a branch, with one of those that were pushed, and with another. */
const deploys = sql`CASE WHEN branch IS NULL THEN ${param("deploysDefault")}
  WHEN branch IN (SELECT value FROM json_each(${param("pushed")})) THEN ${param("deploysPushed")} ELSE ${param("deploysOther")} END`;
const request = deploymentRequest(which, deploys);

const triggered = insertActivity(
  {
    id: param("activityId"),
    accountId: sql`account_id`,
    actor: "webhook",
    actorId: null,
    operation: "triggerWebhook",
    resourceId: sql`id`,
    arguments: "{}",
    outcome: "done",
    requestId: param("requestId"),
    createdAt: param("now"),
  },
  sql`FROM sites WHERE ${which} AND mark = ${param("mark")}`,
);
const recordTrigger = (ctx: Ctx, given: object, mark: string) =>
  ctx.hot(triggered, {
    ...given,
    mark,
    activityId: ctx.newId("activity"),
    requestId: ctx.requestId,
    now: ctx.now().getTime(),
  });

/** The URL is the credential: a request to it deploys the current source. Needs one round trip to D1. */
export async function triggerWebhook(ctx: Ctx, segment: string, event: PushEvent): Promise<Triggered> {
  if (!webhookPattern.test(segment)) throw new AppError("not_found");
  const isOwn = await isOwnWebhook(segment, tokenKeys(ctx.config, "deploy-webhook"));
  const pushed = (event.refs ?? []).flatMap((ref) => /^refs\/heads\/(.*)/s.exec(ref)?.[1] ?? []);
  const deploysOf = (branch: string | null) => Number(!pushSkips(event, branch));
  const given = {
    webhookHash: webhookHash(segment),
    earlierHash: isOwn ? earlierWebhookHash(segment) : "",
    pushed: JSON.stringify(pushed),
    deploysDefault: deploysOf(null),
    deploysPushed: deploysOf(pushed[0] ?? null),
    deploysOther: deploysOf(`${pushed.join("")}/other`),
  };
  const { statements, accepted, mark } = request(ctx, given, "webhook");
  const done = accepted(await batch(ctx, { ...statements, activity: recordTrigger(ctx, given, mark) }));
  if (done) return { skipped: false, status: done.status, deploymentId: done.deploymentId };
  const [site] = await ctx.db
    .select()
    .from(sites)
    .where(inArray(sites.webhookHash, [given.webhookHash, given.earlierHash]));
  if (!site || site.status === "DELETING") throw new AppError("not_found");
  if (pushSkips(event, site.branch)) return { skipped: true, status: site.status };
  return refuseDeployment(ctx, site);
}
