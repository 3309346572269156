import { createHash } from "node:crypto";
import type { ContainerSpec } from "../docker/engine.ts";
import { acmeCaFile, caddyConfig, type IngressSettings } from "./caddy.ts";

export const ingressImage = "caddy:2";

/** Caddy on the host's network, outliving the agent. The name tells it from that of another agent on the same engine. */
export function ingressContainer(
  agentId: string,
  ingress: IngressSettings,
): { spec: ContainerSpec; labels: Record<string, string> } {
  const labels = { "berth.managed": "true", "berth.ingress": agentId };
  const settings = {
    Image: ingressImage,
    // Handed over as an environment variable, so that no file of the host is mounted.
    Env: [
      `BERTH_CADDY_CONFIG=${JSON.stringify(caddyConfig(ingress))}`,
      `BERTH_ACME_CA=${ingress.tls?.caPem ?? ""}`,
      "XDG_DATA_HOME=/data",
      "XDG_CONFIG_HOME=/config",
    ],
    Entrypoint: [],
    Cmd: [
      "sh",
      "-c",
      `printf %s "$BERTH_ACME_CA" >${acmeCaFile}; printf %s "$BERTH_CADDY_CONFIG" | exec caddy run --config -`,
    ],
    HostConfig: {
      NetworkMode: "host",
      // Certificates outlive the container: who issues them allows a name only a few a week.
      ...(ingress.tls && {
        Mounts: [
          {
            Type: "volume" as const,
            Source: `berth-ingress-${agentId}`,
            Target: "/data",
            VolumeOptions: { NoCopy: true, Labels: labels, DriverConfig: { Name: "local", Options: {} } },
          },
        ],
      }),
      // Caddy looks up one name at a time: a packet lost while the responder restarts stalls all sites this long.
      DnsOptions: ["timeout:1", "attempts:3"],
      Init: true,
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
    spec: { name: `berth-ingress-${agentId}`, ...settings, Labels: { ...labels, "berth.config": hash } },
  };
}
