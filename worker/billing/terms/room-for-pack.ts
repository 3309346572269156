import { sql, type SQL } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { conflict, type AppError } from "../../domain/app-error.ts";
import { maxUnpaidMb } from "../../domain/placement.ts";
import {
  bestHostFor,
  hasDisk,
  hasLinked,
  hostRooms,
  linkedTo,
  packMbOf,
} from "../../jobs/hosts/placement.ts";
import type { InvoiceRow } from "../../db/rows.ts";
import { idleLane } from "../../db/job-conditions.ts";
import { tableOf, termedOf, wordOf, type Termed } from "../../db/resource.ts";
import { beingPaid, inService } from "./resource.ts";

/** Whether row `r`'s host has memory for the pack; a site without data on its host may use another host. */
export function roomForPack(kind: Termed, memoryMb: SQL): { fits: SQL; set: SQL } {
  const more = sql`(${memoryMb} - ${sql.raw(packMbOf("r"))})`;
  // A site that gave up its reservation gets memory for the pack when it runs again.
  const counts = kind === "sites" ? sql`r.reserved` : sql`1`;
  const here = sql`(r.host_id IS NULL OR NOT ${counts} OR ${more} <= 0
    OR ${more} <= (SELECT h.free_mb FROM ${hostRooms} h WHERE h.id = r.host_id))`;
  if (kind === "databases") return { fits: here, set: sql`` };
  const other = sql`(${bestHostFor("r", sql`h.id <> r.host_id AND h.free_mb >= ${memoryMb}`)})`;
  const moves = sql`(r.status IN ('RUNNING', 'STOPPED') AND r.leaving_host_id IS NULL AND ${idleLane(sql`r.id`)}
    AND NOT EXISTS (SELECT 1 FROM site_volumes WHERE site_id = r.id))`;
  return {
    fits: sql`(${here} OR ${moves} AND ${other} IS NOT NULL)`,
    set: sql`, move_host_id = CASE WHEN NOT ${here} THEN ${other} WHEN ${idleLane(sql`r.id`)} THEN NULL ELSE move_host_id END`,
  };
}

export const noRoomForPack = (kind: Termed, memoryMb: number): AppError =>
  conflict(
    kind === "databases"
      ? `Its host has no room for ${memoryMb} MB, and a database cannot move because its data is there: ask the operator for more capacity.`
      : `No host has room for ${memoryMb} MB that this site could run on; a site with volumes or databases cannot move. Ask the operator for more capacity.`,
  );

/**
 * For the batch that opens a checkout of a first invoice, which reserves nothing: no money is taken while no host has
 * room. A host that is away, or has yet to report its memory, may have it; without any host, what is paid waits for one.
 */
export function roomForNew(ctx: Ctx, { kind: of, resourceId }: InvoiceRow) {
  const kind = termedOf(resourceId);
  if (kind === null || of !== wordOf(kind)) return null;
  const memoryMb = sql`(SELECT memory_mb FROM packs WHERE id = r.pack_id)`;
  const linked = sql`(SELECT min(o.name) FROM ${linkedTo(kind, "r")} o)`;
  const unplaced = sql`${tableOf(kind)} r WHERE r.id = ${resourceId} AND coalesce((
    SELECT max(iif(${hasDisk}, coalesce(h.free_mb, ${memoryMb}), 0)) FROM ${hostRooms} h
    WHERE h.status = 'ACTIVE' AND (r.region IS NULL OR h.region = r.region) AND ${hasLinked(kind, "r")}),
    iif(${linked} IS NULL, NULL, 0)) < ${memoryMb}`;
  return {
    guard: sql`NOT EXISTS (SELECT 1 FROM ${unplaced})`,
    /** @throws AppError conflict if no host has enough memory */
    refuse: async () => {
      const [found] = await ctx.db.all<{ memoryMb: number; region: string | null; linked: string | null }>(
        sql`SELECT ${memoryMb} AS memoryMb, r.region, ${linked} AS linked FROM ${unplaced}`,
      );
      if (found?.linked != null)
        throw conflict(
          `This ${wordOf(kind)} is linked to ${found.linked} and has to be on its host, which has no room for ${found.memoryMb} MB${found.region === null ? "" : `, is not in region ${found.region}`} or takes nothing new. Nothing was charged: ask the operator for more capacity there, then pay again, or remove the link.`,
        );
      if (found)
        throw conflict(
          `No host${found.region === null ? "" : ` in region ${found.region}`} has room for the ${found.memoryMb} MB of this ${wordOf(kind)}. Nothing was charged: ask the operator for more capacity, then pay again, or cancel this and order a smaller pack.`,
        );
    },
  };
}

/**
 * For the batch that opens a checkout of this invoice: reserves memory for its pack while the checkout is open. An
 * overdue renewal is accepted without it, because its owner can no longer choose another pack.
 */
export function keepRoomForPack(
  ctx: Ctx,
  { id, kind: of, resourceId, packId, accountId }: InvoiceRow,
  mark: string,
) {
  const kind = termedOf(resourceId);
  if (kind === null || packId === null || (of !== "change" && of !== "renewal")) return null;
  const table = tableOf(kind);
  const memoryMb = sql`(SELECT memory_mb FROM packs WHERE id = ${packId})`;
  const changes = sql`r.id = ${resourceId} AND r.pack_id <> ${packId} AND r.next_pack_id = ${packId} AND r.next_pack_at IS NULL
    AND r.status IN ${inService} AND r.paid_until > ${ctx.now().getTime()}`;
  const others = sql`(SELECT coalesce(sum(max(0, n.memory_mb - o.memory_mb)), 0)
    FROM invoices i JOIN packs n ON n.id = i.pack_id
    JOIN (SELECT id, pack_id FROM sites UNION ALL SELECT id, pack_id FROM databases) s ON s.id = i.resource_id
    JOIN packs o ON o.id = s.pack_id
    WHERE i.account_id = ${accountId} AND i.status = 'unpaid' AND i.kind IN ('change', 'renewal') AND i.id <> ${id}
      AND ${beingPaid(sql`i.id`)})`;
  const more = sql`max(0, ${memoryMb} - (SELECT memory_mb FROM packs WHERE id = r.pack_id))`;
  const isWithin = sql`(${others} = 0 OR ${others} + ${more} <= ${maxUnpaidMb})`;
  const room = roomForPack(kind, memoryMb);
  return {
    statement: ctx.statement(
      sql`UPDATE ${table} AS r SET mark = ${mark} ${room.set} WHERE ${changes} AND ${isWithin} AND ${room.fits}`,
    ),
    guard: sql`NOT EXISTS (SELECT 1 FROM ${table} r WHERE ${changes} AND r.mark IS NOT ${mark})`,
    /** @throws AppError conflict if there is not enough memory */
    refuse: async () => {
      const [found] = await ctx.db.all<{ memoryMb: number; isWithin: number; fits: number }>(
        sql`SELECT ${memoryMb} AS memoryMb, ${isWithin} AS isWithin, ${room.fits} AS fits FROM ${table} r WHERE ${changes}`,
      );
      if (found?.fits === 0) throw noRoomForPack(kind, found.memoryMb);
      if (found?.isWithin === 0)
        throw conflict(
          "Capacity is reserved for another pack of yours that is being paid: complete that payment first, or wait an hour.",
        );
    },
  };
}
