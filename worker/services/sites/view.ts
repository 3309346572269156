import { sql } from "drizzle-orm";
import type { EnvEntry } from "../../../protocol/agent/jobs.ts";
import type { EnvVariableShown, Site } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../context.ts";
import { deployments, siteEnvVersions } from "../../db/schema.ts";
import { siteAddress } from "../../domain/slug.ts";
import { domainView, type DomainRow } from "../domains/view.ts";
import type { SiteRow } from "./owned.ts";

type DeploymentRow = typeof deployments.$inferSelect;

/** Of each site, the deployments its record names: the one in service and the newest. */
export const shownInRecord = sql`(${deployments.status} = 'LIVE' OR ${deployments.number} = (SELECT max(n.number) FROM deployments n WHERE n.site_id = ${deployments.siteId}))`;

export const shownEnv = ({ key, value, secret, scope }: EnvEntry): EnvVariableShown => ({
  key,
  value: secret ? null : value,
  encrypted: secret,
  scope,
});

/** Of each site, its newest environment. */
export const newestEnv = sql`${siteEnvVersions.version} = (SELECT max(n.version) FROM site_env_versions n WHERE n.site_id = ${siteEnvVersions.siteId})`;

export const iso = (date: Date | null): string | null => date?.toISOString() ?? null;

/** The public record. `shown` holds at least this site's rows chosen by `shownInRecord`, newest first. */
export function siteView(
  ctx: Ctx,
  site: SiteRow,
  shown: DeploymentRow[],
  env: readonly EnvEntry[],
  names: readonly DomainRow[],
): Site {
  const own = shown.filter((row) => row.siteId === site.id);
  const current = own.find((row) => row.id === site.currentDeploymentId);
  const latest = own[0];
  return {
    id: site.id,
    name: site.name,
    status: site.status,
    deployType: site.deployType,
    githubUrl: site.githubUrl,
    branch: site.branch,
    port: site.port,
    buildCommand: site.buildCommand,
    startCommand: site.startCommand,
    rootDir: site.rootDir,
    healthCheckPath: site.healthCheckPath,
    image: site.image,
    packId: site.packId,
    billingTerm: site.billingTerm,
    url: siteAddress(ctx.config.SITES_ORIGIN, site.slug).url,
    domains: names.filter((row) => row.siteId === site.id).map((row) => domainView(ctx, site, row)),
    envVariables: env.map(shownEnv),
    currentDeployment: current
      ? {
          id: current.id,
          commit: current.commit,
          finishedAt: (current.finishedAt ?? current.createdAt).toISOString(),
        }
      : null,
    latestDeployment: latest ? { id: latest.id, status: latest.status, error: latest.error } : null,
    paidUntil: iso(site.paidUntil),
    hostId: site.hostId,
    createdAt: site.createdAt.toISOString(),
    updatedAt: site.updatedAt.toISOString(),
  };
}
