import { and, eq } from "drizzle-orm";
import type { ById } from "../../../protocol/api/common.ts";
import type { EnvRestore } from "../../../protocol/api/env-history.ts";
import type { EnvChanged } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { siteEnvVersions } from "../../db/schema.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { idIn } from "../owned.ts";
import { requireKept } from "./owned.ts";
import { addEnvVersion, readsOfEnv } from "./set-env.ts";
import { shownEnv } from "./view.ts";

/** Makes an earlier version the newest one; the version that it replaces stays in the history. */
export async function restoreEnvVersion(
  ctx: Ctx,
  { id: siteId, version }: ById & EnvRestore,
): Promise<EnvChanged> {
  const id = idIn("site", siteId);
  const {
    found: [found],
    wanted: [wanted],
    newest: [newest],
    links,
  } = await batch(ctx, {
    ...readsOfEnv(ctx, id),
    wanted: ctx.db
      .select()
      .from(siteEnvVersions)
      .where(and(eq(siteEnvVersions.siteId, id), eq(siteEnvVersions.version, version))),
  });
  const site = requireKept(ctx, found);
  if (!wanted || !newest)
    throw new AppError("not_found", { reason: `Version ${version} of the environment is not kept.` });
  const { entries } = wanted;
  const changed = { envVariables: entries.map(shownEnv), restartRequired: site.currentDeploymentId !== null };
  if (wanted.version === newest.version) return changed;
  const linked = entries.find(({ key }) => links.some(({ variable }) => variable === key));
  if (linked)
    throw conflict(
      `${linked.key} of version ${version} is set by the link to a database now. Remove the link first, then restore the version.`,
    );
  if (!(await addEnvVersion(ctx, id, { version: newest.version + 1, entries, restoredFrom: version })))
    throw conflict("The environment was changed concurrently. Try again.");
  return changed;
}
