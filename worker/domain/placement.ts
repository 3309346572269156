/** Memory reserved for the host's system, the agent and builds. */
export const minReserveMb = 512;
/** On large hosts, the reserve is one part in this many. */
export const reserveParts = 10;

export const reserveMb = (memoryMb: number): number =>
  Math.max(minReserveMb, Math.floor(memoryMb / reserveParts));

/**
 * The memory of a host that counts. A host in other hands could attract every new site with what it says to have, so no more counts
 * than what it reported first, or an operator has set since.
 */
export const usableMemoryMb = ({
  memoryMb,
  memoryLimitMb,
}: {
  memoryMb: number | null;
  memoryLimitMb: number | null;
}): number | null => (memoryMb === null ? null : Math.min(memoryMb, memoryLimitMb ?? memoryMb));

/** The memory a host has left; null until its agent has reported its total. */
export const freeMemoryMb = (memoryMb: number | null, placedMb: number): number | null =>
  memoryMb === null ? null : memoryMb - reserveMb(memoryMb) - placedMb;

/** Memory that one account can reserve for unpaid upgrades at a time; a single upgrade may exceed it. */
export const maxUnpaidMb = 4096;

/** A job waits this long for the host with the most free memory; afterwards any host with enough may take it. */
export const preferMs = 10_000;

/** The error of a deployment that is bound to a host without enough free memory. */
export const noRoomAtHomeReason = (memoryMb: number, freeMb: number, minutes: number): string =>
  `The site's host did not have the required ${memoryMb} MB of free memory within ${minutes} minutes; it has ${Math.max(0, freeMb)} MB. The site cannot move because its data is on that host. Ask the operator for more room there, then try again.`;

/** The error of a deployment or a database that no host could take in time. */
export function noRoomReason(
  wanted: { memoryMb: number; region: string | null; linked?: string | null },
  /** Among the connected hosts that accept sites, and have what it is linked to. */
  hosts: { region: string | null; freeMb: number; hasDisk: boolean }[],
  minutes: number,
  what: "site" | "database" = "site",
): string {
  const where = wanted.region === null ? "" : ` in region ${wanted.region}`;
  const again = what === "site" ? "deploy again" : "start it again";
  const ask = `Ask the operator for more room, then ${again}.`;
  const near = hosts.filter(({ region }) => wanted.region === null || region === wanted.region);
  const roomy = near.filter(({ hasDisk }) => hasDisk);
  if (near.length > 0 && roomy.length === 0)
    return wanted.linked != null
      ? `The disk of the host of ${wanted.linked}, which this ${what} is linked to and has to be beside, was nearly full for ${minutes} minutes. Ask the operator for more disk space there, or remove the link, then ${again}.`
      : `The disk of each host${where} was nearly full for ${minutes} minutes. Ask the operator for more disk space, then ${again}.`;
  if (wanted.linked != null)
    return `The host of ${wanted.linked}, which this ${what} is linked to and has to be beside, was not up${where} with the required ${wanted.memoryMb} MB of free memory within ${minutes} minutes${near[0] ? `; it has ${Math.max(0, near[0].freeMb)} MB` : ""}. Ask the operator for more room there, or remove the link, then ${again}.`;
  if (hosts.length === 0)
    return `No host was up within ${minutes} minutes. Ask the operator whether the hosts are up, then ${again}.`;
  if (near.length === 0) return `No host${where} was up within ${minutes} minutes. ${ask}`;
  const most = Math.max(0, ...roomy.map(({ freeMb }) => freeMb));
  return `No host${where} had the ${wanted.memoryMb} MB of free memory that this ${what} needs within ${minutes} minutes; the most free memory was ${most} MB. ${ask}`;
}
