import type { ById } from "../../../protocol/api/common.ts";
import { sql } from "drizzle-orm";
import type { Command, CommandCreate } from "../../../protocol/api/commands.ts";
import { triggerOf, type Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { conflict } from "../../domain/app-error.ts";
import { maxCommandsRunning, maxCommandsWaiting } from "../../domain/job-rules.ts";
import type { SiteRow } from "../../db/rows.ts";
import { refuseUnpaid } from "../refuse-unpaid.ts";
import { siteOwnedBy } from "../sites/owned.ts";
import { commandById } from "./owned.ts";
import { queueCommand } from "../../jobs/commands/queue.ts";
import { commandView } from "./view.ts";

/**
 * Runs a command once in a new container of the site's image. A stopped site works as well, since its image is kept.
 */
export async function runCommand(
  ctx: Ctx,
  { id: siteId, ...wanted }: ById & CommandCreate,
): Promise<Command> {
  const site = await siteOwnedBy(ctx, siteId);
  await refuseUnpaid(ctx, site);
  const id = ctx.newId("command");
  const {
    queued: [queued],
  } = await batch(ctx, {
    command: queueCommand(ctx, id, {
      command: sql`${wanted.command}`,
      timeoutSeconds: sql`${wanted.timeoutSeconds}`,
      trigger: triggerOf(ctx),
      scheduleId: sql`NULL`,
      from: sql`sites s`,
      where: sql`s.id = ${site.id}`,
    }),
    queued: commandById(ctx, id),
  });
  if (!queued) throw conflict(refusal(site));
  ctx.hosts.wake(site.hostId);
  return commandView(queued);
}

function refusal({ status, currentDeploymentId, hostId }: SiteRow): string {
  if (status === "DELETING") return "A site that is being deleted cannot run commands.";
  if (currentDeploymentId === null)
    return "No version of this site has run yet, so there is no image to run commands in. Deploy the site first.";
  if (hostId === null)
    return "The site is currently not placed on a host. Deploy it again, then run the command.";
  return `${maxCommandsWaiting} commands of this site are already queued, and ${maxCommandsRunning} run at a time. Wait until one has finished, or cancel one.`;
}
