import { createHash } from "node:crypto";
import type { RunSpec } from "../../protocol/agent/jobs.ts";
import { startLine } from "../build/start-line.ts";
import type { ContainerSpec, ContainerState } from "./engine.ts";

export const networkName = (accountId: string): string => `berth-${accountId}`;
export const networkLabels = (accountId: string) => ({ "berth.managed": "true", "berth.account": accountId });

/** The exact labels by which a site's containers are found. */
export const siteLabels = (siteId: string) => ({ "berth.managed": "true", "berth.site": siteId });

const mebibyte = 1024 * 1024;

/** What section 5 of the CIS Docker Benchmark asks of a container that runs hostile code, as far as images bear it. */
export const hardening = {
  Init: true,
  CapDrop: ["ALL"],
  // What official images need to bind a low port and to change from root to their own user.
  CapAdd: ["CHOWN", "DAC_OVERRIDE", "FOWNER", "NET_BIND_SERVICE", "SETGID", "SETUID"],
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

/**
 * The container of one release. `release` tells containers of one deployment apart (a restart makes another one).
 * Tenants are hostile: no host mounts, no ports on the host, no capability beyond binding a low port and changing user.
 */
export function siteContainer(
  agentId: string,
  run: RunSpec,
  deploymentId: string,
  image: string,
  release: string,
): ContainerSpec {
  const env = run.env.filter(({ scope }) => scope !== "build").map(({ key, value }) => `${key}=${value}`);
  const spec = {
    Image: image,
    Env: [...env.filter((entry) => !entry.startsWith("PORT=")), `PORT=${run.port}`],
    ...(run.startCommand !== null && { Cmd: ["sh", "-c", startLine(run.startCommand)], Entrypoint: [] }),
    HostConfig: {
      ...hardening,
      NetworkMode: networkName(run.accountId),
      ...limitsOf(run.limits),
    },
  };
  const secretKeys = run.env.filter(({ scope, secret }) => secret && scope !== "build").map(({ key }) => key);
  const config = createHash("sha256").update(JSON.stringify(spec)).digest("hex").slice(0, 32);
  return {
    ...spec,
    name: `berth-${run.siteId}-${deploymentId}${release && `-${release}`}`,
    Labels: {
      ...siteLabels(run.siteId),
      "berth.agent": agentId,
      "berth.account": run.accountId,
      "berth.deployment": deploymentId,
      "berth.memory": String(run.limits.memoryMb),
      "berth.secrets": secretKeys.join(","),
      "berth.config": config,
    },
  };
}

/**
 * The secret values a container was given: the engine keeps them, so that an agent that has just started knows what to
 * mask. Of a container made before its secret variables were named, all values.
 */
export function secretsIn({ env, labels }: ContainerState): string[] {
  const named = labels["berth.secrets"]?.split(",");
  return env.flatMap((entry) => {
    const at = entry.indexOf("=");
    return !named || named.includes(entry.slice(0, at)) ? [entry.slice(at + 1)] : [];
  });
}
