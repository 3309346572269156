import { createHash } from "node:crypto";
import type { ContainerSpec } from "../docker/engine.ts";
import { acmeCaFile, caddyConfig, permissionModule, type IngressSettings } from "./caddy.ts";

/** Caddy 2.11 and Debian's 2.6 refuse each other's configuration: the one in the image is asked what it knows. */
const start = `printf %s "$BERTH_ACME_CA" >${acmeCaFile}
if caddy list-modules | grep -qx ${permissionModule}; then config=$BERTH_CADDY_CONFIG; else config=$BERTH_CADDY_CONFIG_ASK; fi
printf %s "$config" | exec caddy run --config -`;

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
      `BERTH_CADDY_CONFIG=${JSON.stringify(caddyConfig(ingress, "module"))}`,
      `BERTH_CADDY_CONFIG_ASK=${JSON.stringify(caddyConfig(ingress, "ask"))}`,
      `BERTH_ACME_CA=${ingress.tls?.caPem ?? ""}`,
      "XDG_DATA_HOME=/data",
      "XDG_CONFIG_HOME=/config",
    ],
    Entrypoint: [],
    Cmd: ["sh", "-c", start],
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
