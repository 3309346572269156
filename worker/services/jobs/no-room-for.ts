import { sql } from "drizzle-orm";
import type { Ctx } from "../../context.ts";
import type { jobs } from "../../db/schema.ts";
import { queueTimeoutMs } from "../../domain/job-rules.ts";
import { noRoomReason } from "../../domain/placement.ts";
import { freeMb, takesSites } from "../hosts/placement.ts";

/** Why no host took this job of a site that has none: a sentence that names what was missing. */
export async function noRoomFor(ctx: Ctx, job: typeof jobs.$inferSelect): Promise<string> {
  const [[wanted], hosts] = await Promise.all([
    ctx.db.all<{ memoryMb: number; region: string | null }>(
      sql`SELECT p.memory_mb AS memoryMb, s.region AS region FROM sites s JOIN packs p ON p.id = s.pack_id WHERE s.id = ${job.siteId}`,
    ),
    ctx.db.all<{ region: string | null; freeMb: number }>(
      sql`SELECT h.region AS region, ${freeMb} AS freeMb FROM hosts h WHERE ${takesSites}`,
    ),
  ]);
  return noRoomReason(wanted ?? { memoryMb: 0, region: null }, hosts, queueTimeoutMs / 60_000);
}
