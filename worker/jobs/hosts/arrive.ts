import { and, eq, isNotNull, sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { domains, sites } from "../../db/schema.ts";
import { leaveAfterMs, leaveWithoutDnsMs } from "../../domain/job-rules.ts";

/**
 * Statements for the batch that ends a deployment on this host: the site and its waiting work now belong to it. The
 * previous host keeps serving for a while, because clients may have cached the DNS record. If Berth maintains
 * the records, `reconcileDns` brings `leave_at` forward.
 */
export const arrive = (ctx: Ctx, siteId: Id<"site">, hostId: Id<"host">, leasedAt: Date | null, ended: SQL) =>
  [
    ctx.db
      .update(sites)
      .set({
        leavingHostId: sql`host_id`,
        leaveAt: new Date(ctx.now().getTime() + (ctx.zone ? leaveWithoutDnsMs : leaveAfterMs)),
        hostId,
        reserved: true,
        moveHostId: null,
        // A pack that was paid for since the lease: its containers have the limits of the one before.
        limitsPackId: sql`CASE WHEN pack_changed_at > ${leasedAt?.getTime() ?? 0} THEN limits_pack_id END`,
      })
      .where(and(eq(sites.id, siteId), eq(sites.moveHostId, hostId), ended))
      .returning({ id: sites.id, from: sites.leavingHostId }),
    ctx.statement(sql`
      UPDATE jobs SET host_id = ${hostId} WHERE site_id = ${siteId} AND status = 'QUEUED' AND ${ended}
        AND (SELECT host_id FROM sites WHERE id = ${siteId}) = ${hostId}`),
    // Their records may name the previous host.
    ctx.db
      .update(domains)
      .set({ nextCheckAt: ctx.now() })
      .where(
        and(
          eq(domains.siteId, siteId),
          isNotNull(domains.verifiedAt),
          sql`${ended} AND (SELECT leave_at FROM sites WHERE id = ${siteId}) IS NOT NULL`,
        ),
      ),
  ] as const;

/** Cancels the move: the site stays where it is, and the partial copy on the other host is removed. */
export const giveUpMove = (ctx: Ctx, siteId: Id<"site">, hostId: Id<"host"> | null, ended: SQL) =>
  ctx.db
    .update(sites)
    .set({ leavingHostId: sql`move_host_id`, leaveAt: ctx.now(), moveHostId: null })
    .where(and(eq(sites.id, siteId), sql`${sites.moveHostId} = ${hostId}`, ended));
