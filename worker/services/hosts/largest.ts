import { and, eq, ne, sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import type { PackRow } from "../../db/rows.ts";
import { hosts } from "../../db/schema.ts";
import { invalid } from "../../domain/app-error.ts";
import { freeMemoryMb } from "../../domain/placement.ts";
import { usableMb } from "../../jobs/hosts/placement.ts";

/** The query for the memory of the largest host there, up or not; null: none is known, or one has yet to report its own. */
export const largestHost = (ctx: Ctx, region: string | null | undefined) =>
  ctx.db
    .select({
      memoryMb: sql<
        number | null
      >`CASE WHEN count(*) = count(${hosts.memoryMb}) THEN max(${sql.raw(usableMb("hosts"))}) END`,
    })
    .from(hosts)
    .where(and(ne(hosts.status, "REMOVED"), region == null ? undefined : eq(hosts.region, region)));

/** Rejects what even an empty host could not run before anything is paid for. @throws AppError invalid_request */
export function refuseTooLarge(
  pack: PackRow,
  region: string | null | undefined,
  largest: { memoryMb: number | null } | undefined,
): void {
  const mostMb = freeMemoryMb(largest?.memoryMb ?? null, 0);
  if (mostMb === null || pack.memoryMb <= mostMb) return;
  throw invalid(
    "packId",
    `no host${region == null ? "" : ` in region ${region}`} has ${pack.memoryMb} MB for one ${pack.kind}: choose a smaller pack, or ask the operator for a larger host`,
  );
}
