import { getTableColumns, sql, type SQL } from "drizzle-orm";
import { buildSettings, runSettings, sites } from "../../db/schema.ts";

const columns = getTableColumns(sites);
type Column = keyof typeof columns;

function valueOf(name: Column): string {
  const { name: column, dataType } = columns[name];
  if (dataType === "boolean")
    return `json(CASE ${column} WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END)`;
  return dataType === "json" ? `json(iif(json_valid(${column}), ${column}, 'null'))` : column;
}

const snapshotOf = (names: readonly Column[]): SQL =>
  sql.raw(
    `(SELECT json_object(${names.map((name) => `'${name}', ${valueOf(name)}`).join(", ")}) FROM sites WHERE id = deployments.site_id)`,
  );

/** For an UPDATE of `deployments`: snapshots of the site's present run and build settings. */
export const runNow = snapshotOf(runSettings);
export const buildNow = snapshotOf(buildSettings);
