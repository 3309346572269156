import { desc, eq } from "drizzle-orm";
import type { EnvEntry } from "../../../protocol/agent/jobs.ts";
import type { ById } from "../../../protocol/api/common.ts";
import type { EnvHistory } from "../../../protocol/api/env-history.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { siteEnvVersions } from "../../db/schema.ts";
import { envChanges } from "../../domain/env-changes.ts";
import { idIn, requireOwned } from "../owned.ts";
import { siteById } from "./owned.ts";

/** The kept versions of a site's environment: authors, times and changed keys, without any value. */
export async function listEnvVersions(ctx: Ctx, { id: siteId }: ById): Promise<EnvHistory> {
  const id = idIn("site", siteId);
  const {
    found: [found],
    versions,
  } = await batch(ctx, {
    found: siteById(ctx, id),
    versions: ctx.db
      .select()
      .from(siteEnvVersions)
      .where(eq(siteEnvVersions.siteId, id))
      .orderBy(desc(siteEnvVersions.version)),
  });
  requireOwned(ctx, found);
  const open = ({ key, value }: EnvEntry) => ctx.secrets.open(value, `site_env:${id}:${key}`);
  return {
    data: versions.map(({ version, entries, actor, actorId, restoredFrom, createdAt }, index) => ({
      version,
      at: createdAt.toISOString(),
      actor,
      actorId,
      restoredFrom,
      changes: envChanges(versions[index + 1]?.entries ?? [], entries, open),
      variables: entries.length,
      current: index === 0,
    })),
  };
}
