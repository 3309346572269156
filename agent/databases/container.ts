import { createHash } from "node:crypto";
import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import type { ContainerSpec } from "../docker/engine.ts";
import { hardening, limitsOf, networkName } from "../docker/specs.ts";
import { dataEntrypoint } from "./entrypoint.ts";
import { engines } from "./index.ts";
import { containerName, databaseLabels, stopGraceSeconds, volumeName } from "../docker/database-objects.ts";
import { label } from "../docker/labels.ts";

/** A database's only container: like a site's, with a volume, and a host name in the account's network. */
export function databaseContainer(agentId: string, spec: DatabaseSpec, subnet: string): ContainerSpec {
  const { databaseId, accountId, hostname, image, limits, type } = spec;
  const engine = engines[type];
  const network = networkName(accountId);
  const body = {
    Image: image,
    Env: engine.env(spec),
    Entrypoint: dataEntrypoint(engine),
    Cmd: [...engine.command(limits), ...engine.guarded(subnet)],
    StopSignal: engine.stopSignal,
    StopTimeout: stopGraceSeconds,
    HostConfig: {
      ...hardening,
      ...limitsOf(limits),
      NetworkMode: network,
      // When memory is short, the kernel kills sites first.
      OomScoreAdj: 100,
      // PostgreSQL's parallel queries use shared memory.
      ShmSize: Math.max(64, Math.floor(limits.memoryMb / 4)) * 1024 * 1024,
      ...(engine.socketFolder && { Tmpfs: { [engine.socketFolder]: "size=1m,mode=1777" } }),
      Mounts: [
        { Type: "volume" as const, Source: volumeName(databaseId, spec.volume), Target: engine.dataPath },
      ],
    },
    NetworkingConfig: { EndpointsConfig: { [network]: { Aliases: [hostname] } } },
  };
  const config = createHash("sha256").update(JSON.stringify(body)).digest("hex").slice(0, 32);
  return {
    ...body,
    name: containerName(databaseId),
    Labels: {
      ...databaseLabels(agentId, databaseId, accountId),
      [label.volume]: volumeName(databaseId, spec.volume),
      [label.memory]: String(limits.memoryMb),
      // The server supports TLS.
      [label.guarded]: "true",
      [label.disk]: String(limits.diskGb ?? 0),
      [label.config]: config,
    },
  };
}
