import type { EngineFacts } from "./engine.ts";

/** Why Berth does not work with an engine, and what to do; null: it does. */
export function unfitReason({ isRootless, remapsUsers }: Pick<EngineFacts, "isRootless" | "remapsUsers">) {
  if (isRootless)
    return "Docker runs rootless here: the host's firewall does not reach its containers, so nothing would keep sites apart. Install Docker as root (https://docs.docker.com/engine/install/), or name its socket in BERTH_DOCKER_SOCKET.";
  if (remapsUsers)
    return 'Docker remaps users here (userns-remap): it then gives no container the host\'s network, which the ingress needs. Take "userns-remap" out of /etc/docker/daemon.json and restart Docker; what it has now is then out of its sight.';
  return null;
}

/** Isolation holds, as what iptables refuses stays refused; what it accepts, Docker's own tables may still drop. */
export const nftablesLimit =
  'Docker\'s firewall backend is nftables, which drops what comes to databases from outside: take "firewall-backend" out of /etc/docker/daemon.json and restart Docker, if databases are to be reached from outside. All else works.';
