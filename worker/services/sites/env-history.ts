import { desc, eq } from "drizzle-orm";
import type { ById } from "../../../protocol/api/common.ts";
import type { EnvHistory } from "../../../protocol/api/env-history.ts";
import type { Ctx } from "../../ctx.ts";
import { siteEnvVersions } from "../../db/schema.ts";
import { envChanges } from "../../domain/env-changes.ts";
import { envOpener } from "../../jobs/sites/open-env.ts";
import { idIn, ownedWith } from "../owned.ts";
import { siteById } from "./owned.ts";

/** The kept versions of a site's environment: authors, times and changed keys, without any value. */
export async function listEnvVersions(ctx: Ctx, { id: siteId }: ById): Promise<EnvHistory> {
  const id = idIn("site", siteId);
  const { versions } = await ownedWith(ctx, siteById(ctx, id), {
    versions: ctx.db
      .select()
      .from(siteEnvVersions)
      .where(eq(siteEnvVersions.siteId, id))
      .orderBy(desc(siteEnvVersions.version)),
  });
  const open = envOpener(ctx, id);
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
