import { and, eq, sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { sites } from "../../db/schema.ts";
import { leaveAfterMs } from "../../domain/job-rules.ts";

/**
 * Statements for one batch, behind the end of a deployment on this host: a site that moved here is this host's, and so is
 * the work that waits for it. The host that carried it goes on serving for a while, as a name's address may be remembered.
 */
export const arrive = (ctx: Ctx, siteId: Id<"site">, hostId: Id<"host">, ended: SQL) =>
  [
    ctx.db
      .update(sites)
      .set({
        leavingHostId: sql`host_id`,
        leaveAt: new Date(ctx.now().getTime() + leaveAfterMs),
        hostId,
        reserved: true,
        moveHostId: null,
      })
      .where(and(eq(sites.id, siteId), eq(sites.moveHostId, hostId), ended))
      .returning({ id: sites.id, from: sites.leavingHostId }),
    ctx.statement(sql`
      UPDATE jobs SET host_id = ${hostId} WHERE site_id = ${siteId} AND status = 'QUEUED' AND ${ended}
        AND (SELECT host_id FROM sites WHERE id = ${siteId}) = ${hostId}`),
  ] as const;

/** The site stays where it is, and what came of it on the other host goes. */
export const giveUpMove = (ctx: Ctx, siteId: Id<"site">, hostId: Id<"host"> | null, ended: SQL) =>
  ctx.db
    .update(sites)
    .set({ leavingHostId: sql`move_host_id`, leaveAt: ctx.now(), moveHostId: null })
    .where(and(eq(sites.id, siteId), sql`${sites.moveHostId} = ${hostId}`, ended));
