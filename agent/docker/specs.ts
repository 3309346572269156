import { createHash } from "node:crypto";
import type { JobArgs, RunSpec } from "../../protocol/agent/jobs.ts";
import { idPrefixes } from "../../protocol/ids.ts";
import { startLine } from "./start-line.ts";
import type { ContainerSpec, ContainerState } from "./engine.ts";
import { emptyLabels, label } from "./labels.ts";

export const networkName = (accountId: string): string => `berth-${accountId}`;
export const networkLabels = (accountId: string) => ({ [label.managed]: "true", [label.account]: accountId });

/** The exact labels by which a site's containers are found. */
export const siteLabels = (siteId: string) => ({ [label.managed]: "true", [label.site]: siteId });

/** The exact labels by which the containers and volumes of a site or a database are found, by its id. */
export const labelsOf = (id: string) =>
  id.startsWith(`${idPrefixes.database}_`)
    ? { [label.managed]: "true", [label.database]: id }
    : siteLabels(id);
/** Whose a container is: a site's or a database's. */
export const ownerOf = (labels: Record<string, string>): string | undefined =>
  labels[label.site] || labels[label.database] || undefined;

/** Between a site's SIGTERM and its SIGKILL. */
export const stopGraceSeconds = 10;

/** A volume's name is the same for whichever agent of this engine carries the site. */
export const volumeName = (siteId: string, name: string): string => `berth-${siteId}-${name}`;
export const volumeLabels = (agentId: string, run: RunSpec, name: string) => ({
  ...siteLabels(run.siteId),
  [label.agent]: agentId,
  [label.account]: run.accountId,
  [label.volume]: name,
});

/** Which of the site's containers this is, from 1. */
export const replicaOf = (labels: Record<string, string>): number => Number(labels[label.replica] ?? 1);
/** The names of the volumes that a container writes to. */
export const volumesOf = (labels: Record<string, string>): string[] =>
  labels[label.volumes]?.split(",").filter(Boolean) ?? [];

const mebibyte = 1024 * 1024;
/** Runtimes start a dozen threads before they do anything. */
const minPids = 64;

/** What section 5 of the CIS Docker Benchmark asks of a container that runs hostile code, as far as images bear it. */
export const hardening = {
  Init: true,
  CapDrop: ["ALL"],
  // What official images need to bind a low port and to change from root to their own user. KILL is the init's: as root it may
  // not hand on a signal to another user without it, and ends everything instead. It reaches nothing beyond the container.
  CapAdd: ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"],
  SecurityOpt: ["no-new-privileges"],
  IpcMode: "private",
  CgroupnsMode: "private",
  ShmSize: 64 * mebibyte,
  // Short of memory, the kernel ends a site before the engine, the agent or the ingress.
  OomScoreAdj: 500,
  Ulimits: [
    // Not above what an engine without CAP_SYS_RESOURCE may give.
    { Name: "nofile", Soft: 16_384, Hard: 16_384 },
    // A core file would fill the host's disk.
    { Name: "core", Soft: 0, Hard: 0 },
  ],
  // A site that keeps crashing waits up to a minute between starts (Docker doubles the pause), within its own limits.
  RestartPolicy: { Name: "unless-stopped" },
  LogConfig: { Type: "json-file", Config: { "max-size": "10m", "max-file": "3" } },
  // No StorageOpt size: overlay2 has quotas on xfs with pquota only. No ReadonlyRootfs: images write beside their code.
};

/** What a container may use of its host. */
export const limitsOf = ({ memoryMb, cpuMilli, pids }: RunSpec["limits"]) => ({
  Memory: memoryMb * mebibyte,
  MemorySwap: memoryMb * mebibyte,
  NanoCpus: cpuMilli * 1_000_000,
  // Where cores are short, as much of them as was paid for.
  CpuShares: Math.max(2, Math.round((cpuMilli * 1024) / 1000)),
  PidsLimit: pids,
});

/** What an app may want to know of itself. */
const ownVariables = ({ siteId, siteUrl, commit }: RunSpec, deploymentId: string) => ({
  BERTH_SITE_ID: siteId,
  ...(siteUrl !== undefined && { BERTH_SITE_URL: siteUrl }),
  BERTH_DEPLOYMENT_ID: deploymentId,
  ...(typeof commit === "string" && { BERTH_COMMIT: commit }),
});

/**
 * One container of a release. `release` tells releases of one deployment apart (a restart makes another one), `replica`
 * the containers of one release, which share what the pack gives.
 * Tenants are hostile: no host mounts, no ports on the host, no capability beyond binding a low port and changing user.
 */
export function siteContainer(
  agentId: string,
  run: RunSpec,
  deploymentId: string,
  image: string,
  release: string,
  replica = 1,
): ContainerSpec {
  const memoryMb = Math.floor(run.limits.memoryMb / run.replicas);
  const cpuMilli = Math.max(10, Math.floor(run.limits.cpuMilli / run.replicas));
  const env = {
    ...ownVariables(run, deploymentId),
    ...Object.fromEntries(
      run.env.filter(({ scope }) => scope !== "build").map(({ key, value }) => [key, value]),
    ),
    PORT: run.port,
  };
  const spec = {
    Image: image,
    Env: Object.entries(env).map(([key, value]) => `${key}=${value}`),
    // Not the image's: the engine runs it on the host's means, as often as an image likes.
    Healthcheck: { Test: ["NONE"] },
    ...(run.startCommand !== null && { Cmd: ["sh", "-c", startLine(run.startCommand)], Entrypoint: [] }),
    HostConfig: {
      ...hardening,
      NetworkMode: networkName(run.accountId),
      ...limitsOf({
        memoryMb,
        cpuMilli,
        pids: Math.min(run.limits.pids, Math.max(minPids, Math.floor(run.limits.pids / run.replicas))),
      }),
      ...(run.volumes.length > 0 && {
        Mounts: run.volumes.map(({ name, mountPath }) => ({
          Type: "volume" as const,
          Source: volumeName(run.siteId, name),
          Target: mountPath,
        })),
      }),
    },
  };
  const secretKeys = run.env.filter(({ scope, secret }) => secret && scope !== "build").map(({ key }) => key);
  const config = createHash("sha256").update(JSON.stringify(spec)).digest("hex").slice(0, 32);
  return {
    ...spec,
    name: `berth-${run.siteId}-${deploymentId}${release && `-${release}`}${replica > 1 ? `-r${replica}` : ""}`,
    Labels: {
      ...emptyLabels,
      ...siteLabels(run.siteId),
      [label.agent]: agentId,
      [label.account]: run.accountId,
      [label.deployment]: deploymentId,
      [label.replica]: String(replica),
      [label.replicas]: String(run.replicas),
      [label.volumes]: run.volumes.map(({ name }) => name).join(","),
      [label.memory]: String(memoryMb),
      [label.disk]: String(run.limits.diskGb ?? 0),
      [label.health]: run.healthCheckPath ?? "",
      [label.secrets]: secretKeys.join(","),
      [label.config]: config,
    },
  };
}

/** Of an image: what its Procfile has run in each new version before it serves; nothing or empty: nothing. */
export const releaseLabel = label.release;

/** A release command is its deployment's, whichever attempt began it. */
export const releaseCommandId = (deploymentId: string): string => `${deploymentId}-release`;
export const isReleaseCommand = ({
  [label.command]: commandId,
  [label.deployment]: deploymentId = "",
}: Record<string, string>): boolean => commandId === releaseCommandId(deploymentId);

/** The exact labels by which the containers of a site's commands are found: they are none of the site's own. */
export const commandLabels = (siteId: string) => ({ [label.managed]: "true", [label.commandsOf]: siteId });

type CommandArgs = Omit<JobArgs<"site.command">, "commandId"> & { commandId: string };

/**
 * A command's container: as the site's own, but it runs once. Its labels say all that an agent needs that finds it. It has
 * the whole pack and the site's volumes.
 */
export function commandContainer(
  agentId: string,
  { run, deploymentId, commandId, command, timeoutSeconds }: CommandArgs,
  lease: { jobId: string; attempt: number },
  image: string,
): ContainerSpec {
  const site = siteContainer(
    agentId,
    { ...run, replicas: 1, startCommand: command },
    deploymentId,
    image,
    "",
  );
  return {
    ...site,
    name: `berth-${commandId}`,
    HostConfig: {
      ...site.HostConfig,
      RestartPolicy: { Name: "no" },
      // Short of memory, commands end before sites do.
      OomScoreAdj: 700,
    },
    Labels: {
      ...site.Labels,
      ...commandLabels(run.siteId),
      // Not the site's own.
      [label.site]: "",
      [label.command]: commandId,
      [label.job]: lease.jobId,
      [label.attempt]: String(lease.attempt),
      [label.timeout]: String(timeoutSeconds),
    },
  };
}

/**
 * The secret values a container was given: the engine keeps them, so that an agent that has just started knows what to
 * mask. Of a container made before its secret variables were named, all values.
 */
export function secretsIn({ env, labels }: ContainerState): string[] {
  const named = labels[label.database]
    ? env.map((entry) => entry.split("=")[0] ?? "").filter((key) => key.endsWith("PASSWORD"))
    : labels[label.secrets]?.split(",");
  return env.flatMap((entry) => {
    const at = entry.indexOf("=");
    return !named || named.includes(entry.slice(0, at)) ? [entry.slice(at + 1)] : [];
  });
}
