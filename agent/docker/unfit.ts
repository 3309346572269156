import type { EngineFacts } from "./engine.ts";

/** Why Berth does not support an engine, and what to do; null if it does. */
export function unfitReason({ isRootless, remapsUsers }: Pick<EngineFacts, "isRootless" | "remapsUsers">) {
  if (isRootless)
    return "Docker runs rootless on this host: the host's firewall does not apply to its containers, so sites would not be isolated. Install Docker as root (https://docs.docker.com/engine/install/), or set BERTH_DOCKER_SOCKET to its socket.";
  if (remapsUsers)
    return 'Docker remaps users on this host (userns-remap), so no container can use the host\'s network, which the ingress needs. Remove "userns-remap" from /etc/docker/daemon.json and restart Docker, which then no longer sees its present containers and images.';
  return null;
}

/**
 * Isolation holds, because packets that iptables refuses stay refused; but packets that it accepts may still be
 * dropped by Docker's tables.
 */
export const nftablesLimit =
  'Docker\'s firewall backend is nftables, which drops public connections to databases: if databases are to be public, remove "firewall-backend" from /etc/docker/daemon.json and restart Docker. Everything else works.';
