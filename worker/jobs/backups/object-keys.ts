import type { backups } from "../../db/schema.ts";

type Row = Pick<typeof backups.$inferSelect, "accountId" | "databaseId" | "id" | "attempt">;

export const folderOf = ({ accountId, databaseId, id }: Row): string =>
  `backups/${accountId}/${databaseId}/${id}/`;
/** Each attempt has its own key, so that a late attempt cannot overwrite what another one completed. */
export const dataKeyOf = (row: Row): string => `${folderOf(row)}${row.attempt}.data`;
export const manifestKeyOf = (row: Row): string => `${folderOf(row)}${row.attempt}.json`;
