/** Conditions for what the owner made: `n` is a namespace. */
export const own = "n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'";
export const notOfExtension = (catalog: string, oid: string): string =>
  `NOT EXISTS (SELECT FROM pg_depend x WHERE x.classid = '${catalog}'::regclass AND x.objid = ${oid} AND x.deptype = 'e')`;
