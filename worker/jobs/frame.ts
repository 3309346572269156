import type {
  DatabaseJobKind,
  EnvEntry,
  Job,
  JobKind,
  KeptDeployment,
  MadeSource,
  RunSpec,
} from "../../protocol/agent/jobs.ts";
import type { Id } from "../../protocol/ids.ts";
import type { Ctx } from "../ctx.ts";
import type { SiteRow, DeploymentRow } from "../db/rows.ts";
import type { BuildSettings, commands, jobs, packs } from "../db/schema.ts";
import { payUrl } from "../domain/pay-url.ts";
import { siteAddress } from "../domain/slug.ts";

export type SiteJobKind = Exclude<JobKind, DatabaseJobKind>;
export type JobMaterial = {
  job: typeof jobs.$inferSelect & { kind: SiteJobKind };
  site: SiteRow;
  pack: typeof packs.$inferSelect;
  /** Of the job's version; null where that is gone. */
  env: EnvEntry[] | null;
  /** What its databases add to it. */
  linkedEnv: EnvEntry[];
  /** The one the job is about. */
  deployment: DeploymentRow | undefined;
  command: typeof commands.$inferSelect | undefined;
  /** The unpaid one. */
  renewal: { token: string } | undefined;
  /** Deployments of the site whose images are kept, newest first. */
  kept: DeploymentRow[];
  /** The site's own names that are proven. */
  domains: string[];
  /** Volumes, by name, that the host has had for the site. */
  heldVolumes: string[];
};

/** The job as it travels: secrets are opened only here, on their way to the host. */
export function frameOf(ctx: Ctx, material: JobMaterial): Job {
  const { job, site, deployment, domains } = material;
  const { id, kind } = job;
  const { rootDir, dockerfilePath, buildCommand } = deployment?.build ?? site;
  switch (kind) {
    case "site.deploy":
      return {
        id,
        kind,
        args: {
          run: runOf(ctx, material),
          deploymentId: deploymentOf(job),
          source: deployment?.rollbackOf
            ? { type: "kept", deploymentId: deployment.rollbackOf, otherwise: sourceOf(ctx, material) }
            : sourceOf(ctx, material),
          rootDir,
          dockerfilePath,
          buildCommand,
          ...buildSettingsOf(deployment?.build ?? site),
          buildTimeoutSeconds: ctx.config.BUILD_TIMEOUT_SECONDS,
          // What it did when that version was new is done: no older one may undo it, or stumble over it.
          ...(deployment?.rollbackOf === null &&
            deployment.trigger !== "move" && {
              release: { command: site.releaseCommand, timeoutSeconds: ctx.config.RELEASE_TIMEOUT_SECONDS },
            }),
          rebuild: deployment?.rebuild ?? false,
          kept: material.kept.flatMap(keptOf),
          ...(deployment?.trigger === "move" && site.wanted === "STOPPED" && { parked: true }),
        },
      };
    case "site.start":
    case "site.restart":
      return { id, kind, args: { run: runOf(ctx, material), deploymentId: deploymentOf(job) } };
    case "site.stop":
      return {
        id,
        kind,
        args: {
          siteId: site.id,
          hostnames: hostnamesOf(ctx, site, domains),
          ...(site.status === "SUSPENDED" && {
            notice: {
              reason: "suspended",
              payUrl: material.renewal ? payUrl(ctx.config.SITE_URL, material.renewal.token) : null,
            },
          }),
        },
      };
    case "site.route":
      return { id, kind, args: { siteId: site.id, hostnames: hostnamesOf(ctx, site, domains) } };
    case "site.command": {
      if (!material.command) throw new Error(`Job ${job.id} names no command`);
      const { id: commandId, command, timeoutSeconds } = material.command;
      const run = runOf(ctx, material);
      return { id, kind, args: { run, deploymentId: deploymentOf(job), commandId, command, timeoutSeconds } };
    }
    case "site.evict":
      return { id, kind, args: { siteId: site.id, accountId: site.accountId } };
    case "site.delete":
      return {
        id,
        kind,
        args: { siteId: site.id, accountId: site.accountId, hostnames: hostnamesOf(ctx, site, domains) },
      };
  }
}

/** Those that are set. */
const buildSettingsOf = ({
  builder,
  installCommand,
  outputDir,
  singlePage,
  languageVersion,
}: BuildSettings) => ({
  ...(typeof builder === "string" && { builder }),
  ...(typeof installCommand === "string" && { installCommand }),
  ...(typeof outputDir === "string" && { outputDir }),
  ...(typeof singlePage === "boolean" && { singlePage }),
  ...(typeof languageVersion === "string" && { languageVersion }),
});

const hostnamesOf = (ctx: Ctx, site: SiteRow, domains: string[]) => [
  siteAddress(ctx.config.SITES_ORIGIN, site.slug).hostname,
  ...domains,
];

function deploymentOf(job: JobMaterial["job"]): Id<"deployment"> {
  if (!job.deploymentId) throw new Error(`Job ${job.id} (${job.kind}) names no deployment`);
  return job.deploymentId;
}

function keptOf(row: DeploymentRow): KeptDeployment[] {
  if (row.imageDigest === null) return [];
  const { id, number, commit, commitMessage, imageDigest, buildKey } = row;
  const imageId = row.imageId ?? imageDigest;
  return [{ deploymentId: id, number, commit, commitMessage, imageDigest, imageId, buildKey }];
}

function sourceOf(ctx: Ctx, { site, deployment }: JobMaterial): MadeSource {
  const { deployType } = site;
  // A site moves, or is rolled back, as it was, whatever was changed or pushed meanwhile.
  const made = deployment?.build ?? site;
  const isAsItWas = deployment?.trigger === "move" || (deployment?.rollbackOf ?? null) !== null;
  if (deployType === "dockerfile" && made.dockerfile !== null)
    return { type: "dockerfile", text: made.dockerfile };
  if (deployType === "image" && made.image !== null) {
    const digest = isAsItWas ? (deployment?.imageDigest ?? deployment?.build?.imageDigest) : null;
    return {
      type: "image",
      reference: made.image,
      login: sameServer(made.image, site.image) ? loginOf(ctx, site) : null,
      ...(typeof digest === "string" && { digest }),
    };
  }
  if (deployType === "github" && made.githubUrl !== null) {
    const token =
      site.gitTokenSealed === null || !sameServer(made.githubUrl, site.githubUrl)
        ? null
        : ctx.secrets.open(site.gitTokenSealed, `sites.git_token:${site.id}`);
    const commit = isAsItWas ? (deployment?.commit ?? null) : null;
    return {
      type: "git",
      address: made.githubUrl,
      branch: made.branch,
      token,
      ...(commit !== null && { commit }),
      ...(made.submodules && { submodules: true }),
      ...(made.lfs && { lfs: true }),
    };
  }
  throw new Error(`Site ${site.id} has no source`);
}

/** What the settings hold by now is a login for the server that they name, and told to no other. */
const sameServer = (made: string, named: string | null): boolean =>
  made.split("/")[0] === named?.split("/")[0];

const loginOf = (ctx: Ctx, { id, registryUsername, registryPasswordSealed }: SiteRow) =>
  registryUsername === null || registryPasswordSealed === null
    ? null
    : {
        username: registryUsername,
        password: ctx.secrets.open(registryPasswordSealed, `sites.registry_password:${id}`),
      };

function runOf(
  ctx: Ctx,
  { job, site, deployment, pack, env, linkedEnv, domains, ...material }: JobMaterial,
): RunSpec {
  const volumes = deployment?.run?.volumes ?? [];
  const heldVolumes = material.heldVolumes.filter((name) => volumes.some((volume) => volume.name === name));
  if (!env) throw new Error(`Version ${job.envVersion} of the environment of site ${site.id} is gone`);
  return {
    siteId: site.id,
    accountId: site.accountId,
    hostnames: hostnamesOf(ctx, site, domains),
    siteUrl: siteAddress(ctx.config.SITES_ORIGIN, site.slug).url,
    commit: deployment?.commit ?? null,
    ...(deployment?.run ?? {
      port: site.port,
      startCommand: site.startCommand,
      healthCheckPath: site.healthCheckPath,
    }),
    replicas: deployment?.run?.replicas ?? 1,
    volumes,
    ...(heldVolumes.length > 0 && { heldVolumes }),
    startTimeoutSeconds: site.startTimeoutSeconds ?? ctx.config.START_TIMEOUT_SECONDS,
    env: [
      ...env
        .filter(({ key }) => !linkedEnv.some((linked) => linked.key === key))
        .map((entry) =>
          entry.secret
            ? { ...entry, value: ctx.secrets.open(entry.value, `site_env:${site.id}:${entry.key}`) }
            : entry,
        ),
      ...linkedEnv,
    ],
    limits: { memoryMb: pack.memoryMb, cpuMilli: pack.cpuMilli, pids: pack.pids, diskGb: pack.diskGb },
  };
}
