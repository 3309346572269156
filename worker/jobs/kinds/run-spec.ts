import type { RunSpec } from "../../../protocol/agent/jobs.ts";
import type { HostIngressRules } from "../../../protocol/api/ingress.ts";
import type { Ctx } from "../../ctx.ts";
import type { SiteRow } from "../../db/rows.ts";
import { siteHostname, siteUrl } from "../../domain/slug.ts";
import { envOpener } from "../sites/open-env.ts";
import { siteOf, type Material } from "./kind.ts";

/** The names that the host routes to the site, its own address first. */
export const hostnamesOf = (ctx: Ctx, site: SiteRow, domains: Material["domains"]): string[] => [
  siteHostname(ctx.config.SITES_ORIGIN, site.slug),
  ...domains.map(({ name }) => name),
];

/** What the host's ingress does for the site. */
export const ingressOf = (site: SiteRow, domains: Material["domains"]): HostIngressRules => {
  const redirects = domains.flatMap(({ name, redirectTo }) =>
    redirectTo === null ? [] : [[name, redirectTo]],
  );
  return redirects.length === 0
    ? site.ingress
    : { ...site.ingress, redirectDomains: Object.fromEntries(redirects) as Record<string, string> };
};

/** Their order is that of the leases, as each lease reads what is stored then. */
export const readAt = ({ leasedAt }: Material["job"]): { readAtMs?: number } =>
  leasedAt === null ? {} : { readAtMs: leasedAt.getTime() };

/** How the site's container runs. */
export function runOf(ctx: Ctx, material: Material): RunSpec {
  const { job, deployment, pack, env, linkedEnv, domains } = material;
  const site = siteOf(material);
  const volumes = deployment?.run?.volumes ?? [];
  const heldVolumes = material.heldVolumes.filter((name) => volumes.some((volume) => volume.name === name));
  if (!env) throw new Error(`Version ${job.envVersion} of the environment of site ${site.id} is gone`);
  const open = envOpener(ctx, site.id);
  return {
    siteId: site.id,
    accountId: site.accountId,
    hostnames: hostnamesOf(ctx, site, domains),
    ingress: ingressOf(site, domains),
    ...readAt(job),
    siteUrl: siteUrl(ctx.config.SITES_ORIGIN, site.slug),
    commit: deployment?.commit ?? null,
    ...(deployment?.run ?? {
      port: site.port,
      startCommand: site.startCommand,
      healthCheckPath: site.healthCheckPath,
    }),
    replicas: deployment?.run?.replicas ?? 1,
    healthCheck: deployment?.run?.healthCheck ?? {},
    lifecycle: deployment?.run?.lifecycle ?? {},
    volumes,
    ...(heldVolumes.length > 0 && { heldVolumes }),
    startTimeoutSeconds: site.startTimeoutSeconds ?? ctx.config.START_TIMEOUT_SECONDS,
    env: [
      ...env
        .filter(({ key }) => !linkedEnv.some((linked) => linked.key === key))
        .map((entry) => (entry.secret ? { ...entry, value: open(entry) } : entry)),
      ...linkedEnv,
    ],
    limits: { memoryMb: pack.memoryMb, cpuMilli: pack.cpuMilli, pids: pack.pids, diskGb: pack.diskGb },
  };
}
