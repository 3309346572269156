const sitesWith = (count: number) => `${count} ${count === 1 ? "site with volumes" : "sites with volumes"}`;

/** Why a drained host does not get empty; null where nothing keeps it from that. */
export const drainNotice = (status: string, count: number): string | null =>
  status === "DRAINING" && count > 0
    ? `${sitesWith(count)} will not move: the data is on this host. It serves on here. To empty the host, its owners take a copy of the data and remove the volumes, or delete the sites.`
    : null;

/** Why a dead host is not removed without another word. */
export const lossWarning = (host: string, names: readonly string[], count: number): string => {
  const more = count > names.length ? ` and ${count - names.length} more` : "";
  return `Removing ${host} loses the data of ${sitesWith(count)} on it (${names.join(", ")}${more}): bring the host back if that can be done. To remove it all the same, add loseVolumes=1; the sites are then deployed elsewhere with empty volumes.`;
};
