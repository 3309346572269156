import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, inArray } from "drizzle-orm";
import type { DeploymentCancelled } from "../../../protocol/api/deployments.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { jobs } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { endAsFailed } from "../../jobs/finish.ts";
import { requestCancel, reviseCancelled } from "../../jobs/request-cancel.ts";
import { idIn, ownedWith } from "../owned.ts";
import { deploymentById } from "./owned.ts";

/** A queued deployment ends at once, a running one when its host has stopped the work. */
export async function cancelDeployment(ctx: Ctx, { id: deploymentId }: ById): Promise<DeploymentCancelled> {
  const id = idIn("deployment", deploymentId);
  const {
    owned: { status },
    job: [job],
  } = await ownedWith(ctx, deploymentById(ctx, id), {
    job: ctx.db
      .select()
      .from(jobs)
      .where(
        and(
          eq(jobs.deploymentId, id),
          eq(jobs.kind, "site.deploy"),
          inArray(jobs.status, ["QUEUED", "LEASED"]),
        ),
      ),
  });
  if (job?.status === "QUEUED") {
    const ended = await endAsFailed(ctx, job, { error: "Cancelled", cancelled: true, durations: null });
    if (ended.recorded) return { id, status: "CANCELLED" };
  }
  // It is running, or a host has just taken it.
  const {
    leased: [leased],
  } = await batch(ctx, {
    leased: requestCancel(ctx, job?.id ?? null),
  });
  if (!leased) throw conflict("This deployment has already finished.");
  reviseCancelled(ctx, [leased]);
  return { id, status };
}
