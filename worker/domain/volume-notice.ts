/** Counts of resources whose data is bound to one host. */
type BoundToHost = { volumeSiteCount: number; databaseCount: number };

const counted = (count: number, one: string, many: string) =>
  count === 0 ? [] : [`${count} ${count === 1 ? one : many}`];

const bound = ({ volumeSiteCount, databaseCount }: BoundToHost): string =>
  [
    ...counted(volumeSiteCount, "site with volumes", "sites with volumes"),
    ...counted(databaseCount, "database", "databases"),
  ].join(" and ");

/** Why a draining host does not become empty; null if nothing prevents it. */
export const drainNotice = (
  status: string,
  { linkedSiteCount, ...what }: BoundToHost & { linkedSiteCount: number },
): string | null =>
  status === "DRAINING" && bound(what) !== ""
    ? `${bound(what)} cannot move because the data is on this host, which keeps serving them${linkedSiteCount === 0 ? "" : `, and ${counted(linkedSiteCount, "site stays", "sites stay")[0]} beside a linked database`}. To empty the host, their owners must copy their data and remove the volumes, or delete the sites and databases.`
    : null;

/** Why removing a dead host needs a second confirmation. */
export const lossWarning = (host: string, names: readonly string[], what: BoundToHost): string => {
  const rest = what.volumeSiteCount + what.databaseCount - names.length;
  const more = rest > 0 ? ` and ${rest} more` : "";
  return `Removing ${host} deletes the data of ${bound(what)} on it (${names.join(", ")}${more}). Bring the host back if possible. To remove it anyway, add loseVolumes=1; sites are then redeployed elsewhere with empty volumes, and databases stay FAILED until they are started empty.`;
};
