import { sql } from "drizzle-orm";
import type { Ctx } from "../ctx.ts";
import type { jobs } from "../db/schema.ts";
import { queueTimeoutMs } from "../domain/job-rules.ts";
import { noRoomAtHomeReason, noRoomReason } from "../domain/placement.ts";
import { hostRooms, takesSites } from "./hosts/placement.ts";

/** Why no host took this job of a site or database without a reservation: a sentence that names what was missing. */
export async function noRoomFor(ctx: Ctx, job: typeof jobs.$inferSelect): Promise<string> {
  const [[wanted], hosts] = await Promise.all([
    ctx.db.all<{ memoryMb: number; region: string | null }>(
      sql`SELECT p.memory_mb AS memoryMb, o.region AS region FROM (
        SELECT region, pack_id FROM sites WHERE id = ${job.siteId}
        UNION ALL SELECT region, pack_id FROM databases WHERE id = ${job.databaseId}) o
        JOIN packs p ON p.id = o.pack_id`,
    ),
    ctx.db.all<{ region: string | null; freeMb: number }>(
      sql`SELECT h.region AS region, h.free_mb AS freeMb FROM ${hostRooms} h
        WHERE ${job.hostId === null ? takesSites : sql`h.id = ${job.hostId}`}`,
    ),
  ]);
  if (job.hostId !== null)
    return noRoomAtHomeReason(wanted?.memoryMb ?? 0, hosts[0]?.freeMb ?? 0, queueTimeoutMs / 60_000);
  return noRoomReason(
    wanted ?? { memoryMb: 0, region: null },
    hosts,
    queueTimeoutMs / 60_000,
    job.databaseId ? "database" : "site",
  );
}
