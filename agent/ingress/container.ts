import { createHash } from "node:crypto";
import type { ContainerSpec } from "../docker/engine.ts";

const image = "caddy:2";

/** Caddy on the host's network, outliving the agent. The name tells it from that of another agent on the same engine. */
export function ingressContainer(
  agentId: string,
  config: object,
): { spec: ContainerSpec; labels: Record<string, string> } {
  const text = JSON.stringify(config);
  const labels = { "berth.managed": "true", "berth.ingress": agentId };
  return {
    labels,
    spec: {
      name: `berth-ingress-${agentId}`,
      Image: image,
      // Handed over as an environment variable, so that no file of the host is mounted.
      Env: [`BERTH_CADDY_CONFIG=${text}`, "XDG_DATA_HOME=/data", "XDG_CONFIG_HOME=/config"],
      Entrypoint: [],
      Cmd: ["sh", "-c", 'printf %s "$BERTH_CADDY_CONFIG" | exec caddy run --config -'],
      Labels: { ...labels, "berth.config": createHash("sha256").update(text).digest("hex").slice(0, 32) },
      HostConfig: {
        NetworkMode: "host",
        Init: true,
        RestartPolicy: { Name: "unless-stopped" },
        CapDrop: ["ALL"],
        CapAdd: ["NET_BIND_SERVICE"],
        SecurityOpt: ["no-new-privileges"],
        LogConfig: { Type: "json-file", Config: { "max-size": "10m", "max-file": "3" } },
      },
    },
  };
}
