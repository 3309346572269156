import { and, desc, eq, inArray, isNull, lt, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { backups } from "../../db/schema.ts";
import { isShrunken, newestWhole } from "../../domain/backup-rules.ts";
import { endFailures } from "./failing.ts";

/** The number of earlier backups to compare with; more than an owner can keep. */
const comparedMax = 100;

/** Statements for the batch that records that a backup was restored and compared. */
export async function proven(ctx: Ctx, id: Id<"backup">, ended: SQL) {
  const [backup] = await ctx.db.select().from(backups).where(eq(backups.id, id));
  const earlier = backup
    ? await ctx.db
        .select()
        .from(backups)
        .where(
          and(
            eq(backups.databaseId, backup.databaseId),
            lt(backups.id, id),
            eq(backups.status, "VERIFIED"),
            isNull(backups.removedAt),
          ),
        )
        .orderBy(desc(backups.id))
        .limit(comparedMax)
    : [];
  const whole = newestWhole(earlier);
  const shrunkFrom = backup && whole && isShrunken(backup, whole) ? whole.id : null;
  const complete = and(eq(backups.id, id), inArray(backups.status, ["STORED", "VERIFIED"]), ended);
  return [
    // A decrease that the owner confirmed as intended stays confirmed when the backup is verified again.
    ctx.db
      .update(backups)
      .set({ shrunkFrom })
      .where(and(complete, eq(backups.status, "STORED"))),
    ctx.db.update(backups).set({ status: "VERIFIED", verifiedAt: ctx.now(), error: null }).where(complete),
    ...(await endFailures(ctx, id, ended)),
  ];
}
