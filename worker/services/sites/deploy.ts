import type { BatchResponse } from "drizzle-orm/batch";
import { and, eq, sql, type SQL } from "drizzle-orm";
import type { SiteActionAccepted } from "../../../protocol/api/sites.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { DeploymentTrigger } from "../../../protocol/states.ts";
import type { Ctx, Db } from "../../ctx.ts";
import { param } from "../../db/param.ts";
import { sites } from "../../db/schema.ts";
import { conflict, type AppError } from "../../domain/app-error.ts";
import { siteEvents } from "../../domain/site-events.ts";
import { deploymentQueue } from "../../jobs/deployments/queue.ts";
import { leaseAtOnce } from "../../jobs/lease.ts";
import { roomAgain } from "../../jobs/hosts/placement.ts";
import { refuseUnpaid } from "./refuse-unpaid.ts";
import type { SiteRow } from "../../db/rows.ts";

type What = {
  rebuild?: boolean | undefined;
  rollbackOf?: Id<"deployment">;
};
type Accepted = SiteActionAccepted & { deploymentId: string };

const { from, to, wanted } = siteEvents.deployRequested;

/**
 * Statements for one batch, its last ones: move the site that `which` names, where `only` holds, to DEPLOYING and queue a
 * deployment, or change nothing at all. A waiting one is joined, not doubled; one that may begin is leased to the site's host.
 * `accepted` reads what they answer.
 */
export function deploymentRequest(which: SQL, only?: SQL) {
  const [mark, now] = [param("mark"), param("now")];
  const move = (db: Db) =>
    db
      .update(sites)
      .set({ status: to, wanted, mark, updatedAt: sql`${now}`, ...roomAgain(now).set })
      .where(and(which, sql`status IN ${from}`, only))
      .returning({ id: sites.id, status: sites.status, hostId: sites.hostId });
  const queue = deploymentQueue(sql`(SELECT id FROM sites WHERE ${which} AND mark = ${mark})`);

  /** @param named the values of the placeholders in `which` and `only` */
  return (
    ctx: Ctx,
    named: Record<string, unknown>,
    trigger: DeploymentTrigger,
    { rebuild, rollbackOf }: What = {},
  ) => {
    const given = { ...named, mark: ctx.newMark(), now: ctx.now().getTime() };
    const jobId = ctx.newId("job");
    const lease = leaseAtOnce(ctx, jobId, rollbackOf !== undefined);
    const statements = [
      ctx.hot(move, given),
      ...queue(ctx, { trigger, rebuild, rollbackOf, jobId, given }),
      ...lease.statements,
    ] as const;
    return {
      statements,
      /** What the batch did; null: nothing. */
      accepted: (answers: BatchResponse<typeof statements>): Accepted | null => {
        const [[moved], replaced, , joined, added, , ...leased] = answers;
        const [waiting] = [...joined.results, ...added.results] as { id: Id<"deployment"> }[];
        if (!moved || !waiting) return null;
        for (const { id } of replaced) ctx.logs.finish(id, "Cancelled: a later request took its place.");
        if (!lease.deliver(leased)) ctx.hosts.wake(moved.hostId);
        return { id: moved.id, status: moved.status, deploymentId: waiting.id };
      },
    };
  };
}

/** Why a site did not move. @throws AppError payment_required, conflict */
export async function refuseDeployment(ctx: Ctx, site: Pick<SiteRow, "id" | "status">): Promise<never> {
  await refuseUnpaid(ctx, site);
  throw conflict(`A ${site.status} site cannot be deployed.`);
}

const which = eq(sites.id, param("siteId"));
const requestOfSite = deploymentRequest(which);

/** `only` says what must hold when the site moves, and why it is refused otherwise. */
export async function deploySite(
  ctx: Ctx,
  site: SiteRow,
  trigger: DeploymentTrigger,
  { only, ...what }: What & { only?: { condition: SQL; refusal: AppError } } = {},
): Promise<Accepted> {
  await refuseUnpaid(ctx, site);
  const request = only ? deploymentRequest(which, only.condition) : requestOfSite;
  const { statements, accepted } = request(ctx, { siteId: site.id }, trigger, what);
  const done = accepted(await ctx.db.batch(statements));
  if (done) return done;
  if (only && (siteEvents.deployRequested.from as readonly string[]).includes(site.status))
    throw only.refusal;
  return refuseDeployment(ctx, site);
}
