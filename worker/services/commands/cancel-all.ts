import { sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../context.ts";

/** Statement for a batch: the site's running commands are to end. `cancelDeployments` behind it answers their leases. */
export const cancelCommands = (ctx: Ctx, siteId: Id<"site">, guard: SQL) =>
  ctx.statement(
    sql`UPDATE jobs SET cancel_requested = 1 WHERE site_id = ${siteId} AND kind = 'site.command' AND status = 'LEASED' AND ${guard}`,
  );

/** Commands whose job ended without them, with their site or their host, end as it did. */
export async function endOrphans(ctx: Ctx, siteId?: Id<"site">): Promise<void> {
  const ended = await ctx.db.all<{ id: Id<"command">; error: string | null }>(sql`
    UPDATE commands SET finished_at = ${ctx.now().getTime()},
      status = coalesce((SELECT CASE status WHEN 'CANCELLED' THEN 'CANCELLED' END FROM jobs WHERE lane = commands.id), 'FAILED'),
      error = (SELECT error FROM jobs WHERE lane = commands.id)
    WHERE status IN ('QUEUED', 'RUNNING') ${siteId ? sql`AND site_id = ${siteId}` : sql``}
      AND NOT EXISTS (SELECT 1 FROM jobs WHERE lane = commands.id AND status IN ('QUEUED', 'LEASED'))
    RETURNING id, error`);
  for (const { id, error } of ended)
    ctx.logs.finish(id, error === null ? "Command cancelled." : `Command failed: ${error}`);
}
