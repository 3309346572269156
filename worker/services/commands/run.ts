import { sql } from "drizzle-orm";
import type { Command, CommandCreate } from "../../../protocol/api/commands.ts";
import type { Ctx } from "../../ctx.ts";
import { conflict } from "../../domain/app-error.ts";
import { maxCommandsRunning, maxCommandsWaiting } from "../../domain/job-rules.ts";
import { refuseUnpaid } from "../sites/refuse-unpaid.ts";
import type { SiteRow } from "../../db/rows.ts";
import { siteOwnedBy } from "../sites/owned.ts";
import { commandById } from "./owned.ts";
import { queueCommand } from "../../jobs/commands/queue.ts";
import { commandView } from "./view.ts";

/** A command in a new container of the site's image, once. Also of a stopped site: its image is there. */
export async function runCommand(ctx: Ctx, siteId: string, wanted: CommandCreate): Promise<Command> {
  const site = await siteOwnedBy(ctx, siteId);
  await refuseUnpaid(ctx, site);
  const id = ctx.newId("command");
  const [, , [queued]] = await ctx.db.batch([
    ...queueCommand(ctx, id, {
      command: sql`${wanted.command}`,
      timeoutSeconds: sql`${wanted.timeoutSeconds}`,
      trigger: "api",
      scheduleId: sql`NULL`,
      from: sql`sites s`,
      where: sql`s.id = ${site.id}`,
    }),
    commandById(ctx, id),
  ]);
  if (!queued) throw conflict(refusal(site));
  ctx.hosts.wake(site.hostId);
  return commandView(queued);
}

function refusal({ status, currentDeploymentId, hostId }: SiteRow): string {
  if (status === "DELETING") return "A DELETING site runs no commands.";
  if (currentDeploymentId === null)
    return "No version of this site has run yet, so there is no image to run commands in: deploy it first.";
  if (hostId === null) return "The site is on no host now: run the command once it has been deployed again.";
  return `${maxCommandsWaiting} commands of this site wait already, and ${maxCommandsRunning} run at a time: wait until one has ended, or cancel one.`;
}
