import { sql } from "drizzle-orm";
import type { Ctx } from "../ctx.ts";
import { tableOf } from "../db/resource.ts";
import type { jobs } from "../db/schema.ts";
import { queueTimeoutMs } from "../domain/job-rules.ts";
import { noRoomAtHomeReason, noRoomReason } from "../domain/placement.ts";
import { hasDisk, hasLinked, hostRooms, isUp, linkedTo } from "./hosts/placement.ts";

/** Why no host took this job of a site or database without a reservation: a sentence that names what was missing. */
export async function noRoomFor(ctx: Ctx, job: typeof jobs.$inferSelect): Promise<string> {
  const kind = job.databaseId ? "databases" : "sites";
  const one = sql`${tableOf(kind)} r WHERE r.id = ${job.databaseId ?? job.siteId}`;
  const [[wanted], hosts] = await Promise.all([
    ctx.db.all<{ memoryMb: number; region: string | null; linked: string | null }>(
      sql`SELECT (SELECT memory_mb FROM packs WHERE id = r.pack_id) AS memoryMb, r.region AS region,
        (SELECT min(o.name) FROM ${linkedTo(kind, "r")} o) AS linked FROM ${one}`,
    ),
    ctx.db.all<{ region: string | null; freeMb: number; hasDisk: number }>(
      sql`SELECT h.region AS region, h.free_mb AS freeMb, ${hasDisk} AS hasDisk FROM ${hostRooms} h
        WHERE ${
          job.hostId === null
            ? sql`${isUp} AND EXISTS (SELECT 1 FROM ${one} AND ${hasLinked(kind, "r")})`
            : sql`h.id = ${job.hostId}`
        }`,
    ),
  ]);
  if (job.hostId !== null)
    return noRoomAtHomeReason(wanted?.memoryMb ?? 0, hosts[0]?.freeMb ?? 0, queueTimeoutMs / 60_000);
  return noRoomReason(
    wanted ?? { memoryMb: 0, region: null, linked: null },
    hosts.map((host) => ({ ...host, hasDisk: host.hasDisk === 1 })),
    queueTimeoutMs / 60_000,
    job.databaseId ? "database" : "site",
  );
}
