import { createHash } from "node:crypto";
import { totalmem } from "node:os";
import type { ContainerSpec, Engine } from "../docker/engine.ts";
import { mebibyte } from "../docker/mebibyte.ts";
import { log } from "../log.ts";
import { accessLogFolder, accessLogVolume } from "./access-log.ts";
import { acmeCaFile, caddyConfig, type IngressSettings } from "./caddy.ts";
import { label } from "../docker/labels.ts";

/** In pieces, as Linux takes no variable of more than 128 KiB, and each network of a proxy is in the configuration several times. */
const configPieces = (config: string): [name: string, piece: string][] =>
  (config.match(/.{1,120000}/gs) ?? []).map((piece, index) => [
    index === 0 ? "BERTH_CADDY_CONFIG" : `BERTH_CADDY_CONFIG_${index}`,
    piece,
  ]);

const configFile = "/tmp/berth-caddy.json";

/** Not through a pipe, of which Caddy would be a part: told to stop, the shell would end at once, and the kernel would kill Caddy. */
const start = (configNames: string[]) => `printf %s "$BERTH_ACME_CA" >${acmeCaFile}
printf %s ${configNames.map((name) => `"$${name}"`).join(" ")} >${configFile}
exec caddy run --config ${configFile}`;

/** What Caddy keeps: its certificates. */
export const ingressVolume = (agentId: string): string => `berth-ingress-${agentId}`;

/** With its minor version: an older `caddy:2` that a host pulled once takes another configuration. */
export const ingressImage = "caddy:2.11";

/** Of the host's memory: what visitors send, and apps answer, is no reason to end a site. */
const memoryMb = (hostMb: number): number => Math.floor(Math.min(4096, Math.max(384, hostMb / 8)));

/** To one container. Each takes 90 KiB of Caddy's while it is silent: so those of one are under a third of the memory. */
export const webSocketsPerMb = 3;

/** Caddy on the host's network, outliving the agent. The name tells it from that of another agent on the same engine. */
export function ingressContainer(
  agentId: string,
  ingress: IngressSettings,
  hostMb = totalmem() / mebibyte,
): { spec: ContainerSpec; labels: Record<string, string> } {
  const labels = { [label.managed]: "true", [label.ingress]: agentId };
  const pieces = configPieces(JSON.stringify(caddyConfig(ingress, memoryMb(hostMb) * webSocketsPerMb)));
  const volume = (source: string, folder: string) => ({
    Type: "volume" as const,
    Source: source,
    Target: folder,
    VolumeOptions: { NoCopy: true, Labels: labels, DriverConfig: { Name: "local", Options: {} } },
  });
  const settings = {
    Image: ingressImage,
    // Handed over in the environment, so that no file of the host is mounted.
    Env: [
      ...pieces.map(([name, piece]) => `${name}=${piece}`),
      `BERTH_ACME_CA=${ingress.tls?.caPem ?? ""}`,
      // Little lives on from one request to the next: Go looks for it a fourth as often, unless memory is short. Then it gives back
      // what it does not need before the kernel would end it.
      "GOGC=400",
      `GOMEMLIMIT=${Math.floor(memoryMb(hostMb) * 0.8)}MiB`,
      "XDG_DATA_HOME=/data",
      "XDG_CONFIG_HOME=/config",
    ],
    Entrypoint: [],
    Cmd: ["sh", "-c", start(pieces.map(([name]) => name))],
    HostConfig: {
      NetworkMode: "host",
      Mounts: [
        volume(accessLogVolume(agentId), accessLogFolder),
        // Certificates outlive the container: who issues them allows a name only a few a week.
        ...(ingress.tls ? [volume(ingressVolume(agentId), "/data")] : []),
      ],
      // Caddy looks up one name at a time: a packet lost while the responder restarts stalls all sites this long.
      DnsOptions: ["timeout:1", "attempts:3"],
      Init: true,
      // Beside sites whose weight is their pack's: one that is busy takes nothing from requests to others.
      CpuShares: 4096,
      Memory: memoryMb(hostMb) * mebibyte,
      MemorySwap: memoryMb(hostMb) * mebibyte,
      // Short of memory, the kernel ends whatever else there is first.
      OomScoreAdj: -500,
      RestartPolicy: { Name: "unless-stopped" },
      CapDrop: ["ALL"],
      CapAdd: ["NET_BIND_SERVICE"],
      SecurityOpt: ["no-new-privileges"],
      LogConfig: { Type: "json-file", Config: { "max-size": "10m", "max-file": "3" } },
    },
  };
  const hash = createHash("sha256").update(JSON.stringify(settings)).digest("hex").slice(0, 32);
  return {
    labels,
    spec: { name: `berth-ingress-${agentId}`, ...settings, Labels: { ...labels, [label.config]: hash } },
  };
}

/** Where the engine may not spare a container, as within another container, it is as others are. */
export async function startIngress(engine: Engine, spec: ContainerSpec): Promise<string> {
  try {
    const id = await engine.createContainer(spec);
    await engine.startContainer(id);
    return id;
  } catch (error) {
    log("warn", "Short of memory, the kernel may end the ingress as soon as a site", { error });
    const found = await engine.inspectContainer(spec.name);
    if (found) await engine.removeContainer(found.id);
    const id = await engine.createContainer({ ...spec, HostConfig: { ...spec.HostConfig, OomScoreAdj: 0 } });
    await engine.startContainer(id);
    return id;
  }
}
