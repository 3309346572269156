import { sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { CommandTrigger } from "../../../protocol/states.ts";
import type { Ctx } from "../../ctx.ts";
import { maxCommandsWaiting } from "../../domain/job-rules.ts";
import { ofSite, queueJob } from "../insert.ts";

/** Whether site `s` has an image on a host and is neither unpaid nor being deleted. */
const hasImage = sql`s.status IN ('DEPLOYING', 'RUNNING', 'STOPPED', 'FAILED')
  AND s.current_deployment_id IS NOT NULL AND s.host_id IS NOT NULL`;

const waitingCommands = sql`(SELECT count(*) FROM commands WHERE site_id = s.id AND status = 'QUEUED')`;

/**
 * Statements for one batch: a waiting command and its job in a lane of its own, where the site has an image and the
 * limit of waiting commands is not reached.
 * @param what the columns of one row, selected from site `s` and further tables
 */
export function queueCommand(
  ctx: Ctx,
  id: Id<"command">,
  what: {
    command: SQL;
    timeoutSeconds: SQL;
    trigger: CommandTrigger;
    scheduleId: SQL;
    from: SQL;
    where: SQL;
  },
) {
  const now = ctx.now().getTime();
  return [
    ctx.statement(sql`
      INSERT INTO commands (id, site_id, account_id, command, timeout_seconds, status, trigger, schedule_id, created_at)
      SELECT ${id}, s.id, s.account_id, ${what.command}, ${what.timeoutSeconds}, 'QUEUED', ${what.trigger}, ${what.scheduleId}, ${now}
      FROM ${what.from} WHERE ${what.where} AND ${hasImage} AND ${waitingCommands} < ${maxCommandsWaiting}`),
    queueJob(ctx, "site.command", {
      ...ofSite,
      lane: sql`c.id`,
      commandId: sql`c.id`,
      from: sql`commands c JOIN sites s ON s.id = c.site_id WHERE c.id = ${id}`,
    }),
  ] as const;
}
