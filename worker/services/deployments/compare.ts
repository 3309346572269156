import { eq, inArray, sql } from "drizzle-orm";
import type { ById } from "../../../protocol/api/common.ts";
import type { DeploymentComparison, DeploymentComparisonQuery } from "../../../protocol/api/deployments.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { deployments, siteEnvVersions } from "../../db/schema.ts";
import { AppError, invalid } from "../../domain/app-error.ts";
import { envChanges } from "../../domain/env-changes.ts";
import { envOpener } from "../../jobs/sites/open-env.ts";
import { idIn, requireOwned } from "../owned.ts";
import { settingsChanges } from "./settings-changes.ts";
import { deploymentView, selectDeployments } from "./view.ts";

/** What differs between two versions of a site, whichever of them is named first. */
export async function compareDeployments(
  ctx: Ctx,
  { id, deploymentId }: ById & DeploymentComparisonQuery,
): Promise<DeploymentComparison> {
  const [one, other] = [idIn("deployment", id), idIn("deployment", deploymentId)];
  const both = [one, other];
  const { rows, builds, environments } = await batch(ctx, {
    rows: selectDeployments(ctx).where(inArray(deployments.id, both)),
    builds: ctx.db
      .select({ id: deployments.id, build: deployments.build })
      .from(deployments)
      .where(inArray(deployments.id, both)),
    environments: ctx.db
      .select()
      .from(siteEnvVersions)
      .where(
        sql`${eq(siteEnvVersions.siteId, sql`(SELECT site_id FROM deployments WHERE id = ${one})`)} AND
          ${inArray(siteEnvVersions.version, sql`(SELECT env_version FROM deployments WHERE id IN (${one}, ${other}))`)}`,
      ),
  });
  for (const each of both)
    requireOwned(
      ctx,
      rows.find((row) => row.id === each),
    );
  const [earlier, later] = rows.toSorted((a, b) => a.number - b.number);
  if (!earlier) throw new AppError("not_found");
  if (!later || earlier.siteId !== later.siteId)
    throw invalid("deploymentId", "name another deployment of the same site");
  const open = envOpener(ctx, earlier.siteId);
  const entriesOf = (version: number) =>
    environments.find((entry) => entry.version === version)?.entries ?? [];
  const buildOf = (which: string) => builds.find((entry) => entry.id === which)?.build ?? null;
  const { differing, unknown } = settingsChanges(
    { run: earlier.run, build: buildOf(earlier.id) },
    { run: later.run, build: buildOf(later.id) },
  );
  return {
    earlier: deploymentView(earlier),
    later: deploymentView(later),
    commit: earlier.commit !== later.commit,
    environment: envChanges(entriesOf(earlier.envVersion), entriesOf(later.envVersion), open),
    settings: earlier.run && later.run && differing,
    unknownSettings: unknown,
  };
}
