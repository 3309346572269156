import { createHash } from "node:crypto";
import type { RunSpec } from "../../protocol/agent/jobs.ts";
import { startLine } from "../build/start-line.ts";
import type { ContainerSpec } from "./engine.ts";

export const networkName = (accountId: string): string => `berth-${accountId}`;
export const networkLabels = (accountId: string) => ({ "berth.managed": "true", "berth.account": accountId });

/** The exact labels by which a site's containers are found. */
export const siteLabels = (siteId: string) => ({ "berth.managed": "true", "berth.site": siteId });

const mebibyte = 1024 * 1024;

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
      Init: true,
      NetworkMode: networkName(run.accountId),
      Memory: run.limits.memoryMb * mebibyte,
      MemorySwap: run.limits.memoryMb * mebibyte,
      NanoCpus: run.limits.cpuMilli * 1_000_000,
      PidsLimit: run.limits.pids,
      CapDrop: ["ALL"],
      CapAdd: ["CHOWN", "DAC_OVERRIDE", "FOWNER", "NET_BIND_SERVICE", "SETGID", "SETUID"],
      SecurityOpt: ["no-new-privileges"],
      RestartPolicy: { Name: "unless-stopped" },
      LogConfig: { Type: "json-file", Config: { "max-size": "10m", "max-file": "3" } },
    },
  };
  const config = createHash("sha256").update(JSON.stringify(spec)).digest("hex").slice(0, 32);
  return {
    ...spec,
    name: `berth-${run.siteId}-${deploymentId}${release && `-${release}`}`,
    Labels: {
      ...siteLabels(run.siteId),
      "berth.agent": agentId,
      "berth.account": run.accountId,
      "berth.deployment": deploymentId,
      "berth.config": config,
    },
  };
}
