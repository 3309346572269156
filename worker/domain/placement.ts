/** Memory a host keeps for itself: its system, the agent and builds. */
export const minReserveMb = 512;
/** One part in this many of a large host. */
export const reserveParts = 10;

export const reserveMb = (memoryMb: number): number =>
  Math.max(minReserveMb, Math.floor(memoryMb / reserveParts));

/** What a host can still take; null while its agent has not said how much it has. */
export const freeMemoryMb = (memoryMb: number | null, placedMb: number): number | null =>
  memoryMb === null ? null : memoryMb - reserveMb(memoryMb) - placedMb;

/** So much memory is kept for larger packs that one account is paying for at the same time; one alone may be larger. */
export const maxUnpaidMb = 4096;

/** For this long a job waits for the host with the most room; then any that has enough may take it. */
export const preferMs = 10_000;

/** What is said of a deployment of a site that is bound to its host, where others took the room it had. */
export const noRoomAtHomeReason = (memoryMb: number, freeMb: number, minutes: number): string =>
  `The site's host did not have the ${memoryMb} MB of memory it needs free within ${minutes} minutes; it has ${Math.max(0, freeMb)} MB. What the site needs is on that host: ask the operator for more room there, then try again.`;

/** What is said of a site's deployment, or of a database, that no host could take in time. */
export function noRoomReason(
  wanted: { memoryMb: number; region: string | null },
  /** Of the hosts that take sites and are connected. */
  hosts: { region: string | null; freeMb: number }[],
  minutes: number,
  what: "site" | "database" = "site",
): string {
  const where = wanted.region === null ? "" : ` in region ${wanted.region}`;
  const again = what === "site" ? "deploy again" : "start it again";
  const ask = `Ask the operator for more room, then ${again}.`;
  const near = hosts.filter(({ region }) => wanted.region === null || region === wanted.region);
  if (hosts.length === 0)
    return `No host was up within ${minutes} minutes. Ask the operator whether the hosts are up, then ${again}.`;
  if (near.length === 0) return `No host${where} was up within ${minutes} minutes. ${ask}`;
  const most = Math.max(0, ...near.map(({ freeMb }) => freeMb));
  return `No host${where} had the ${wanted.memoryMb} MB of memory this ${what} needs free within ${minutes} minutes; the most free has ${most} MB. ${ask}`;
}
