import { and, asc, eq, sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import type { PackRow } from "../../db/rows.ts";
import { packs } from "../../db/schema.ts";

/** The query for the named active pack of this kind, or for the cheapest one if none is named. */
export const packOffered = (ctx: Ctx, kind: PackRow["kind"], packId: string | undefined) =>
  ctx.db
    .select()
    .from(packs)
    .where(
      and(
        eq(packs.kind, kind),
        eq(packs.active, true),
        packId === undefined ? sql`1` : sql`${packs.id} = ${packId}`,
      ),
    )
    .orderBy(asc(packs.priceCents), asc(packs.id))
    .limit(1);
