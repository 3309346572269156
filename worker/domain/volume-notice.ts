/** What keeps its data on one host, by number. */
export type BoundToHost = { volumeSiteCount: number; databaseCount: number };

const counted = (count: number, one: string, many: string) =>
  count === 0 ? [] : [`${count} ${count === 1 ? one : many}`];

const bound = ({ volumeSiteCount, databaseCount }: BoundToHost): string =>
  [
    ...counted(volumeSiteCount, "site with volumes", "sites with volumes"),
    ...counted(databaseCount, "database", "databases"),
  ].join(" and ");

/** Why a drained host does not get empty; null where nothing keeps it from that. */
export const drainNotice = (status: string, what: BoundToHost): string | null =>
  status === "DRAINING" && bound(what) !== ""
    ? `${bound(what)} will not move: the data is on this host, which serves on. To empty it, their owners take a copy of the data and remove the volumes, or delete the sites and databases.`
    : null;

/** Why a dead host is not removed without another word. */
export const lossWarning = (host: string, names: readonly string[], what: BoundToHost): string => {
  const rest = what.volumeSiteCount + what.databaseCount - names.length;
  const more = rest > 0 ? ` and ${rest} more` : "";
  return `Removing ${host} loses the data of ${bound(what)} on it (${names.join(", ")}${more}): bring the host back if that can be done. To remove it all the same, add loseVolumes=1; sites are then deployed elsewhere with empty volumes, databases stay FAILED until they are started empty.`;
};
