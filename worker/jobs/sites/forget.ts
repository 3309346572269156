import { and, eq, gt, isNull, lt, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import {
  backups,
  commands,
  databaseLinks,
  deployments,
  domains,
  schedules,
  siteEnvVersions,
  sites,
  siteVolumes,
} from "../../db/schema.ts";
import { keptAfterDeletionMs } from "../../domain/backup-rules.ts";
import { volumeKeysOf } from "../../domain/volume-keys.ts";

/** Statements for one batch that delete the record, children first, where `guard` still holds. */
export const forgetSite = (ctx: Ctx, siteId: Id<"site">, guard: SQL) => {
  const [first, last] = volumeKeysOf(siteId);
  return [
    ctx.db
      .update(backups)
      .set({ expiresAt: new Date(ctx.now().getTime() + keptAfterDeletionMs) })
      .where(
        and(gt(backups.databaseId, first), lt(backups.databaseId, last), isNull(backups.expiresAt), guard),
      ),
    ctx.db.delete(deployments).where(and(eq(deployments.siteId, siteId), guard)),
    ctx.db.delete(databaseLinks).where(and(eq(databaseLinks.siteId, siteId), guard)),
    ctx.db.delete(domains).where(and(eq(domains.siteId, siteId), guard)),
    ctx.db.delete(siteVolumes).where(and(eq(siteVolumes.siteId, siteId), guard)),
    ctx.db.delete(commands).where(and(eq(commands.siteId, siteId), guard)),
    ctx.db.delete(schedules).where(and(eq(schedules.siteId, siteId), guard)),
    ctx.db.delete(siteEnvVersions).where(and(eq(siteEnvVersions.siteId, siteId), guard)),
    ctx.db.delete(sites).where(and(eq(sites.id, siteId), guard)),
  ] as const;
};
