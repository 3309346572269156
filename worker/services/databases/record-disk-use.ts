import { sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";

/** Stores the host's measurements; writes only rows that changed. */
export async function recordDiskUse(
  ctx: Ctx,
  hostId: Id<"host">,
  measured: readonly { databaseId: Id<"database">; usedMb: number }[],
): Promise<void> {
  const found = JSON.stringify(measured.map(({ databaseId, usedMb }) => [databaseId, Math.ceil(usedMb)]));
  await ctx.statement(sql`
    UPDATE databases SET disk_mb = m.mb
    FROM (SELECT value ->> 0 AS id, value ->> 1 AS mb FROM json_each(${found})) m
    WHERE databases.id = m.id AND host_id = ${hostId} AND disk_mb IS NOT m.mb`);
}
