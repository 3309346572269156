import { and, eq, sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { tableOf, termed, type Termed } from "../../db/resource.ts";
import { sites } from "../../db/schema.ts";
import { addDays } from "../../domain/pricing.ts";
import { databaseEvents } from "../../domain/database-events.ts";
import { siteEvents } from "../../domain/site-events.ts";
import { graceDays } from "../../domain/terms.ts";
import { queueDatabaseJob } from "../../jobs/databases/queue.ts";
import { deploymentQueue } from "../../jobs/deployments/queue.ts";
import { queueSiteJob } from "../../jobs/sites/queue.ts";
import { roomAgain } from "../../jobs/hosts/placement.ts";
import { queueMove } from "../../jobs/hosts/queue-move.ts";
import { queueStop } from "../../jobs/queue-stop.ts";
import { ofSuspended, selectDue, type TermRow } from "./resource.ts";

/** A resource that its owner had stopped stays stopped. */
const statusAfter = {
  sites: sql`CASE WHEN wanted = 'STOPPED' AND current_deployment_id IS NOT NULL THEN 'STOPPED' ELSE ${siteEvents.resumed.to} END`,
  databases: sql`CASE WHEN version IS NULL AND wanted = 'RUNNING' THEN ${databaseEvents.provisionRequested.to} ELSE ${databaseEvents.resumed.to} END`,
};

/**
 * Starts the version in service on its host; deploys it again if the site has no host; deploys anew if none ever ran.
 */
function startSite(ctx: Ctx, id: Id<"site">, mark: string) {
  const mine = sql`SELECT id FROM sites WHERE id = ${id} AND mark = ${mark} AND status = 'DEPLOYING'`;
  return {
    room: ctx.db
      .update(sites)
      .set(roomAgain(sql`${ctx.now().getTime()}`).set)
      .where(and(eq(sites.id, id), eq(sites.mark, mark), eq(sites.status, "DEPLOYING"))),
    move: queueMove(ctx, sql`(${mine} AND host_id IS NULL AND current_deployment_id IS NOT NULL)`),
    queue: deploymentQueue(sql`(${mine} AND current_deployment_id IS NULL)`)(ctx, { trigger: "renewal" }),
    start: queueSiteJob(
      ctx,
      "site.start",
      id,
      sql`s.mark = ${mark} AND s.status = 'DEPLOYING' AND s.host_id IS NOT NULL AND s.current_deployment_id IS NOT NULL`,
    ),
    // Shows the page of a stopped site again.
    stop: queueStop(ctx, "sites", id, sql`r.mark = ${mark} AND r.status = 'STOPPED'`),
  };
}

const startDatabase = (ctx: Ctx, id: Id<"database">, mark: string) => ({
  provision: queueDatabaseJob(
    ctx,
    "database.provision",
    id,
    sql`d.mark = ${mark} AND d.status = 'PROVISIONING'`,
  ),
  start: queueDatabaseJob(
    ctx,
    "database.start",
    id,
    sql`d.mark = ${mark} AND d.status = 'STOPPED' AND d.wanted = 'RUNNING'`,
  ),
});

/** For an UPDATE of the suspended row `r`: what it becomes, unless its account is suspended. */
export const resumedStatus = (kind: Termed): SQL =>
  sql`CASE WHEN ${ofSuspended} THEN status ELSE ${statusAfter[kind]} END`;

/** Statements for the batch that resumed the row with this mark. */
export const startAgain = (ctx: Ctx, kind: Termed, id: Id<"site"> | Id<"database">, mark: string) =>
  kind === "sites" ? startSite(ctx, id as Id<"site">, mark) : startDatabase(ctx, id as Id<"database">, mark);

/** Starts what was suspended with its account, once that is released, if its term still runs. */
export async function resumeReleased(ctx: Ctx, accountId?: Id<"account">): Promise<void> {
  const now = ctx.now();
  const whose = accountId === undefined ? sql`1` : sql`r.account_id = ${accountId}`;
  const due = sql`+r.status = 'SUSPENDED' AND r.paid_until > ${addDays(now, -graceDays).getTime()}
    AND r.account_id IN (SELECT id FROM accounts WHERE released_at IS NOT NULL)
    AND EXISTS (SELECT 1 FROM accounts WHERE id = r.account_id AND suspended_at IS NULL AND released_at >= r.suspended_at)`;
  for (const kind of termed)
    for (const row of await ctx.db.all<TermRow>(selectDue(kind, sql`${due} AND ${whose}`))) {
      const mark = ctx.newMark();
      await batch(ctx, {
        resumed: ctx.statement(sql`
          UPDATE ${tableOf(kind)} AS r SET suspended_at = NULL, mark = ${mark}, updated_at = ${now.getTime()},
            status = ${resumedStatus(kind)}
          WHERE id = ${row.id} AND ${due}`),
        started: startAgain(ctx, kind, row.id, mark),
      });
      ctx.hosts.wake(row.hostId);
    }
}
