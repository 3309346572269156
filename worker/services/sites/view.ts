import { getTableColumns, sql } from "drizzle-orm";
import type { EnvEntry } from "../../../protocol/agent/jobs.ts";
import { ingressSettingNames, type Ingress, type IngressRules } from "../../../protocol/api/ingress.ts";
import { Site, type EnvVariableShown } from "../../../protocol/api/sites.ts";
import type { DeploymentStatus } from "../../../protocol/states.ts";
import type { Ctx, Db } from "../../ctx.ts";
import { siteEnvVersions, sites } from "../../db/schema.ts";
import { blankOf } from "../../domain/blank.ts";
import { isoTime } from "../../domain/iso-time.ts";
import { billingDayOf } from "../../domain/pricing.ts";
import { siteUrl } from "../../domain/slug.ts";
import { domainsOf, domainsOfSite, domainView, type DomainRow } from "../domains/view.ts";

export const shownEnv = ({ key, value, secret, scope }: EnvEntry): EnvVariableShown => ({
  key,
  value: secret ? null : value,
  encrypted: secret,
  scope,
});

/** The latest environment of each site. */
export const newestEnv = sql`${siteEnvVersions.version} = (SELECT max(n.version) FROM site_env_versions n WHERE n.site_id = ${siteEnvVersions.siteId})`;

/** The result of a JSON subquery, parsed; null if it has none. */
const json = <T>(query: ReturnType<typeof sql>, name: string) =>
  sql<T>`${query}`.mapWith((text: string) => JSON.parse(text) as T).as(name);

/**
 * Sites with everything in their public representation, in one statement: rows of other tables are selected as JSON.
 */
export const selectRecords = (db: Db) => db.select(recordFields).from(sites);

const recordFields = {
  ...getTableColumns(sites),
  hostOffline:
    sql<number>`EXISTS (SELECT 1 FROM hosts WHERE id = sites.host_id AND offline_since IS NOT NULL)`.as(
      "host_offline",
    ),
  current: json<{
    id: string;
    number: number;
    commit: string | null;
    commitMessage: string | null;
    finishedAt: number;
    error: string | null;
  } | null>(
    sql`(SELECT json_object('id', id, 'number', number, 'commit', commit_sha, 'commitMessage', commit_message, 'finishedAt', coalesce(finished_at, created_at), 'error', error)
      FROM deployments WHERE id = sites.current_deployment_id)`,
    "current",
  ),
  latest: json<{ id: string; number: number; status: DeploymentStatus; error: string | null } | null>(
    sql`(SELECT json_object('id', id, 'number', number, 'status', status, 'error', error)
      FROM deployments WHERE site_id = sites.id ORDER BY number DESC LIMIT 1)`,
    "latest",
  ),
  env: json<EnvEntry[] | null>(
    sql`(SELECT entries FROM site_env_versions WHERE site_id = sites.id ORDER BY version DESC LIMIT 1)`,
    "env",
  ),
  domains: sql<DomainRow[]>`${domainsOfSite}`.mapWith(domainsOf).as("domains"),
};
export type SiteRecord = Awaited<ReturnType<typeof selectRecords>>[number];

/** All names in their order, as a site's own options stand in their midst. */
const blank: object = blankOf(Object.keys(Site.shape));
const noIngress = blankOf(ingressSettingNames);

/** The password is never shown, nor its hash. */
function shownIngress(rules: IngressRules): Ingress {
  const { basicAuth } = rules;
  return {
    ...noIngress,
    ...rules,
    basicAuth: basicAuth ? { username: basicAuth.username, hasPassword: true } : null,
  } as Ingress;
}

/** The public representation. */
export function siteView(ctx: Ctx, site: SiteRecord): Site {
  const { current, latest } = site;
  const view: Omit<Site, keyof SiteRecord["buildOptions"]> = {
    ...blank,
    id: site.id,
    name: site.name,
    status: site.status,
    deployType: site.deployType,
    githubUrl: site.githubUrl,
    branch: site.branch,
    submodules: site.submodules,
    lfs: site.lfs,
    port: site.port,
    buildCommand: site.buildCommand,
    startCommand: site.startCommand,
    releaseCommand: site.releaseCommand,
    startTimeoutSeconds: site.startTimeoutSeconds,
    rootDir: site.rootDir,
    dockerfilePath: site.dockerfilePath,
    healthCheckPath: site.healthCheckPath,
    replicas: site.replicas,
    healthCheck: site.healthCheck,
    keptImages: site.keptImages,
    lifecycle: site.lifecycle,
    volumes: site.volumes,
    ingress: shownIngress(site.ingress),
    image: site.image,
    region: site.region,
    packId: site.packId,
    nextPackId: site.nextPackId,
    billingTerm: site.billingTerm,
    nextBillingTerm: site.nextBillingTerm,
    billingDay: billingDayOf(site),
    url: siteUrl(ctx.config.SITES_ORIGIN, site.slug),
    domains: site.domains.map((row) => domainView(ctx, site, row)),
    envVariables: (site.env ?? []).map((entry) =>
      shownEnv(ctx.actor.type === "viewer" ? { ...entry, value: "…" } : entry),
    ),
    currentDeployment: current && { ...current, finishedAt: isoTime(new Date(current.finishedAt)) },
    latestDeployment: latest,
    paidUntil: isoTime(site.paidUntil),
    hostId: site.hostId,
    hostOffline: site.hostOffline === 1,
    createdAt: isoTime(site.createdAt),
    updatedAt: isoTime(site.updatedAt),
  };
  return Object.assign(view, site.buildOptions) as Site;
}
