import { and, eq, sql, type SQL } from "drizzle-orm";
import type { SiteActionAccepted } from "../../../protocol/api/sites.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { DeploymentTrigger } from "../../../protocol/states.ts";
import type { Ctx, Db } from "../../ctx.ts";
import { batch, type Answers } from "../../db/batch.ts";
import { param } from "../../db/param.ts";
import { sites } from "../../db/schema.ts";
import { conflict, type AppError } from "../../domain/app-error.ts";
import { siteEvents } from "../../domain/site-events.ts";
import { deploymentQueue } from "../../jobs/deployments/queue.ts";
import { leaseAtOnce } from "../../jobs/lease.ts";
import { roomAgain } from "../../jobs/hosts/placement.ts";
import type { SiteRow } from "../../db/rows.ts";
import { refuseUnpaid } from "../refuse-unpaid.ts";

type What = {
  rebuild?: boolean | undefined;
  rollbackOf?: Id<"deployment">;
  ref?: string | undefined;
  withEnv?: boolean | undefined;
};
type Accepted = SiteActionAccepted & { deploymentId: string };

const { from, to, wanted } = siteEvents.deployRequested;

/**
 * Statements at the end of a batch that set the site selected by `which` to DEPLOYING and queue a deployment if `only`
 * holds, or change nothing. A queued deployment is joined instead of duplicated; one that can start is leased to the
 * site's host. `accepted` reads their results.
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
    { rebuild, rollbackOf, ref, withEnv }: What = {},
  ) => {
    const given = { ...named, mark: ctx.newMark(), now: ctx.now().getTime() };
    const jobId = ctx.newId("job");
    const lease = leaseAtOnce(ctx, jobId, rollbackOf !== undefined);
    const statements = {
      moved: ctx.hot(move, given),
      queue: queue(ctx, { trigger, rebuild, rollbackOf, ref, withEnv, jobId, given }),
      lease: lease.statements,
    };
    return {
      statements,
      mark: given.mark,
      /** The result of the batch; null: nothing changed. */
      accepted: ({
        moved: [moved],
        queue: { replaced, joined, added },
        lease: leased,
      }: Answers<typeof statements>): Accepted | null => {
        const [waiting] = [...joined.results, ...added.results] as { id: Id<"deployment"> }[];
        if (!moved || !waiting) return null;
        for (const { id } of replaced) ctx.logs.finish(id, "Cancelled because a later request replaced it.");
        if (!lease.deliver(leased)) ctx.hosts.wake(moved.hostId);
        return { id: moved.id, status: moved.status, deploymentId: waiting.id };
      },
    };
  };
}

/** Why a site did not change. @throws AppError payment_required, conflict */
export async function refuseDeployment(ctx: Ctx, site: Pick<SiteRow, "id" | "status">): Promise<never> {
  await refuseUnpaid(ctx, site);
  throw conflict(`A ${site.status} site cannot be deployed.`);
}

const which = eq(sites.id, param("siteId"));
const requestOfSite = deploymentRequest(which);

/** `only` is a condition for the site's row, with the reason to refuse otherwise. */
export async function deploySite(
  ctx: Ctx,
  site: SiteRow,
  trigger: DeploymentTrigger,
  { only, ...what }: What & { only?: { condition: SQL; refusal: AppError } },
): Promise<Accepted> {
  await refuseUnpaid(ctx, site);
  const request = only ? deploymentRequest(which, only.condition) : requestOfSite;
  const { statements, accepted } = request(ctx, { siteId: site.id }, trigger, what);
  const done = accepted(await batch(ctx, statements));
  if (done) return done;
  if (only && (siteEvents.deployRequested.from as readonly string[]).includes(site.status))
    throw only.refusal;
  return refuseDeployment(ctx, site);
}
