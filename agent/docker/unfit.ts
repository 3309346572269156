import type { EngineFacts } from "./engine.ts";

/** Why Berth does not support an engine, and what to do; null if it does. */
export function unfitReason({ isRootless, remapsUsers }: Pick<EngineFacts, "isRootless" | "remapsUsers">) {
  if (isRootless)
    return "Docker runs rootless on this host: the host's firewall does not apply to its containers, so sites would not be isolated. Install Docker as root (https://docs.docker.com/engine/install/), or set BERTH_DOCKER_SOCKET to its socket.";
  if (remapsUsers)
    return 'Docker remaps users on this host (userns-remap), so no container can use the host\'s network, which the ingress needs. Remove "userns-remap" from /etc/docker/daemon.json and restart Docker, which then no longer sees its present containers and images.';
  return null;
}

/** Why tenants' builds can get out of an engine, and what to do; null if they cannot, or it does not say which release it is. */
export function leakyEngine({ version }: Pick<EngineFacts, "version">): string | null {
  const [, major, minor, patch] = /^([1-9]\d*)\.(\d+)\.(\d+)/.exec(version)?.map(Number) ?? [];
  if (major === undefined || minor === undefined || patch === undefined) return null;
  // Docker 24.0.9 fixes runc alone.
  const isFixed = major > 25 || (major === 25 && (minor > 0 || patch >= 2));
  return isFixed
    ? null
    : `Docker ${version} on this host is old: by CVE-2024-23651 and CVE-2024-23652 of its BuildKit, a tenant's Dockerfile can read, write and delete files of this host. Install Docker 25.0.2 or newer (https://docs.docker.com/engine/install/); docker.io of Debian 12 is older.`;
}

/**
 * Isolation holds, because packets that iptables refuses stay refused; but packets that it accepts may still be
 * dropped by Docker's tables.
 */
export const nftablesLimit =
  'Docker\'s firewall backend is nftables, which drops public connections to databases: if databases are to be public, remove "firewall-backend" from /etc/docker/daemon.json and restart Docker. Everything else works.';
