import { createHash } from "node:crypto";
import type { JobArgs, RunSpec } from "../../protocol/agent/jobs.ts";
import { HealthCheck } from "../../protocol/api/sites.ts";
import { idPrefixes } from "../../protocol/ids.ts";
import { jsonIn } from "../../protocol/json.ts";
import { startLine } from "./start-line.ts";
import type { ContainerSpec, ContainerState } from "./engine.ts";
import { emptyLabels, label } from "./labels.ts";
import { mebibyte } from "./mebibyte.ts";

export const networkName = (accountId: string): string => `berth-${accountId}`;
export const networkLabels = (accountId: string) => ({ [label.managed]: "true", [label.account]: accountId });

/** The exact labels by which a site's containers are found. */
export const siteLabels = (siteId: string) => ({ [label.managed]: "true", [label.site]: siteId });

/** The exact labels by which the containers and volumes of a site or a database are found, by its id. */
export const labelsOf = (id: string) =>
  id.startsWith(`${idPrefixes.database}_`)
    ? { [label.managed]: "true", [label.database]: id }
    : siteLabels(id);
/** The id of the site or database that a container belongs to. */
export const ownerOf = (labels: Record<string, string>): string | undefined =>
  labels[label.site] || labels[label.database] || undefined;

/** Seconds between a site's SIGTERM and its SIGKILL, unless its lifecycle says otherwise. */
export const stopGraceSeconds = 10;
export const stopGraceOf = (labels: Record<string, string>): number =>
  Number(labels[label.stopTimeout]) || stopGraceSeconds;
/** Seconds that a replaced container may drain; null: as the host does. */
export const drainSecondsOf = (labels: Record<string, string>): number | null =>
  Number(labels[label.drain]) || null;

/** How a container is checked; what is missing is as the host does. An older agent's container may have its image's label. */
export const healthCheckOf = (labels: Record<string, string>): HealthCheck =>
  HealthCheck.safeParse(jsonIn(labels[label.healthCheck] || "{}")).data ?? {};

/** The path that is asked for; null: none, or it is enough that the port takes connections. */
export const healthPathOf = (labels: Record<string, string>): string | null =>
  healthCheckOf(labels).kind === "tcp" ? null : labels[label.health] || null;

/** Docker's own restart policies: without an exit by itself, the agent brings containers in service back. */
const restartPolicyNames = { always: "unless-stopped", "on-failure": "on-failure", never: "no" } as const;

/** A volume's name does not depend on the agent that manages the site. */
export const volumeName = (siteId: string, name: string): string => `berth-${siteId}-${name}`;
export const volumeLabels = (agentId: string, run: RunSpec, name: string) => ({
  ...siteLabels(run.siteId),
  [label.agent]: agentId,
  [label.account]: run.accountId,
  [label.volume]: name,
});

/** The number of this container among the site's replicas, from 1. */
export const replicaOf = (labels: Record<string, string>): number => Number(labels[label.replica] ?? 1);
/** The names of the volumes mounted into a container. */
export const volumesOf = (labels: Record<string, string>): string[] =>
  labels[label.volumes]?.split(",").filter(Boolean) ?? [];

/** Runtimes start a dozen threads before they do anything. */
const minPids = 64;

/** Section 5 of the CIS Docker Benchmark for containers that run hostile code, as far as images tolerate it. */
export const hardening = {
  Init: true,
  CapDrop: ["ALL"],
  // Official images need these to bind a low port and to switch from root to their own user. KILL is for the init:
  // without it, its root may not forward a signal to another user and kills everything instead. It affects nothing
  // outside the container.
  CapAdd: ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"],
  SecurityOpt: ["no-new-privileges"],
  IpcMode: "private",
  CgroupnsMode: "private",
  ShmSize: 64 * mebibyte,
  // When memory is short, the kernel kills a site before the engine, the agent or the ingress.
  OomScoreAdj: 500,
  Ulimits: [
    // An engine without CAP_SYS_RESOURCE cannot grant more.
    { Name: "nofile", Soft: 16_384, Hard: 16_384 },
    // A core file would fill the host's disk.
    { Name: "core", Soft: 0, Hard: 0 },
  ],
  // A site that keeps crashing waits up to a minute between starts (Docker doubles the pause), within its own limits.
  RestartPolicy: { Name: "unless-stopped" },
  LogConfig: { Type: "json-file", Config: { "max-size": "10m", "max-file": "3" } },
  // No StorageOpt size: overlay2 has quotas only on xfs with pquota. No ReadonlyRootfs: images write beside their
  // code.
};

/** The container's share of its host's resources. */
export const limitsOf = ({ memoryMb, cpuMilli, pids }: RunSpec["limits"]) => ({
  Memory: memoryMb * mebibyte,
  MemorySwap: memoryMb * mebibyte,
  NanoCpus: cpuMilli * 1_000_000,
  // When cores are short, CPU time is shared in proportion to the packs.
  CpuShares: Math.max(2, Math.round((cpuMilli * 1024) / 1000)),
  PidsLimit: pids,
});

/** What each of so many containers of a release has of the pack. */
export const shareOf = ({ memoryMb, cpuMilli, pids }: RunSpec["limits"], replicas: number) => ({
  memoryMb: Math.floor(memoryMb / replicas),
  cpuMilli: Math.max(10, Math.floor(cpuMilli / replicas)),
  pids: Math.min(pids, Math.max(minPids, Math.floor(pids / replicas))),
});

/** Variables that tell an app about itself. */
const ownVariables = ({ siteId, siteUrl, commit }: RunSpec, deploymentId: string) => ({
  BERTH_SITE_ID: siteId,
  ...(siteUrl !== undefined && { BERTH_SITE_URL: siteUrl }),
  BERTH_DEPLOYMENT_ID: deploymentId,
  ...(typeof commit === "string" && { BERTH_COMMIT: commit }),
});

/**
 * One container of a release. `release` distinguishes releases of one deployment (a restart creates another),
 * `replica` the containers of one release, which share the pack's limits. Tenants are hostile: no host mounts, no
 * host ports, no capabilities beyond binding a low port and switching the user.
 */
export function siteContainer(
  agentId: string,
  run: RunSpec,
  deploymentId: string,
  image: string,
  release: string,
  replica = 1,
): ContainerSpec {
  const { lifecycle = {} } = run;
  const share = shareOf(run.limits, run.replicas);
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
    // Not the image's own check: the engine would run it outside the limits, as often as an image likes.
    Healthcheck: { Test: ["NONE"] },
    ...(lifecycle.stopSignal !== undefined && { StopSignal: lifecycle.stopSignal }),
    ...(run.startCommand !== null && { Cmd: ["sh", "-c", startLine(run.startCommand)], Entrypoint: [] }),
    HostConfig: {
      ...hardening,
      RestartPolicy: { Name: restartPolicyNames[lifecycle.restartPolicy ?? "always"] },
      NetworkMode: networkName(run.accountId),
      ...limitsOf(share),
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
      [label.memory]: String(share.memoryMb),
      [label.disk]: String(run.limits.diskGb ?? 0),
      [label.health]: run.healthCheckPath ?? "",
      [label.healthCheck]: run.healthCheck ? JSON.stringify(run.healthCheck) : "",
      [label.restart]: lifecycle.restartPolicy ?? "",
      [label.drain]: String(lifecycle.drainSeconds ?? ""),
      [label.stopTimeout]: String(lifecycle.stopTimeoutSeconds ?? ""),
      [label.secrets]: secretKeys.join(","),
      [label.config]: config,
    },
  };
}

/** On an image: the release command of its Procfile; absent or empty: none. */
export const releaseLabel = label.release;

/** A release command belongs to its deployment, whichever attempt started it. */
export const releaseCommandId = (deploymentId: string): string => `${deploymentId}-release`;
export const isReleaseCommand = ({
  [label.command]: commandId,
  [label.deployment]: deploymentId = "",
}: Record<string, string>): boolean => commandId === releaseCommandId(deploymentId);

/** The exact labels by which the containers of a site's commands are found; they do not count as the site's own. */
export const commandLabels = (siteId: string) => ({ [label.managed]: "true", [label.commandsOf]: siteId });

type CommandArgs = Omit<JobArgs<"site.command">, "commandId"> & { commandId: string };

/**
 * A command's container: like the site's own, but it runs once, with the whole pack and the site's volumes. Its
 * labels hold everything that an agent needs to adopt it.
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
      // When memory is short, commands are killed before sites.
      OomScoreAdj: 700,
    },
    Labels: {
      ...site.Labels,
      ...commandLabels(run.siteId),
      // It does not count as the site's own.
      [label.site]: "",
      [label.command]: commandId,
      [label.job]: lease.jobId,
      [label.attempt]: String(lease.attempt),
      [label.timeout]: String(timeoutSeconds),
    },
  };
}

/**
 * The secret values in a container's environment: the engine keeps them, so that a restarted agent knows what to
 * mask. All values if the container does not name its secret variables.
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
