import { and, eq, inArray, sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { commands } from "../../db/schema.ts";
import { idleLane } from "../../db/job-conditions.ts";

/**
 * Statement for a batch: requests cancellation of the site's running commands. `cancelDeployments`, which must follow
 * it, returns their leases.
 */
export const cancelCommands = (ctx: Ctx, siteId: Id<"site">, guard: SQL) =>
  ctx.statement(
    sql`UPDATE jobs SET cancel_requested = 1 WHERE site_id = ${siteId} AND kind = 'site.command' AND status = 'LEASED' AND ${guard}`,
  );

const ofJob = (column: string) => sql`(SELECT ${sql.raw(column)} FROM jobs WHERE lane = ${commands.id})`;

/** Statement for a batch: ends commands whose job ended without them, with the job's outcome. */
export const endOrphans = (ctx: Ctx, siteId?: Id<"site">) => {
  return ctx.db
    .update(commands)
    .set({
      status: sql`CASE ${ofJob("status")} WHEN 'CANCELLED' THEN 'CANCELLED' ELSE 'FAILED' END`,
      error: ofJob("error"),
      finishedAt: ctx.now(),
    })
    .where(
      and(
        inArray(commands.status, ["QUEUED", "RUNNING"]),
        siteId && eq(commands.siteId, siteId),
        idleLane(commands.id),
      ),
    )
    .returning({ id: commands.id, error: commands.error });
};

/** Ends the log streams of the commands that `endOrphans` returned. */
export function tellOrphans(ctx: Ctx, ended: { id: Id<"command">; error: string | null }[]): void {
  for (const { id, error } of ended)
    ctx.logs.finish(id, error === null ? "Command cancelled." : `Command failed: ${error}`);
}
