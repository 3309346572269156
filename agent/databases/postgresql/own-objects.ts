/** Conditions for what the owner made: `n` is a namespace. */
export const own = "n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'";
export const notOfExtension = (catalog: string, oid: string): string =>
  `NOT EXISTS (SELECT FROM pg_depend x WHERE x.classid = '${catalog}'::regclass AND x.objid = ${oid} AND x.deptype = 'e')`;

/** JSON as psql can print it: of text, it leaves out the characters that Unicode reserves, which names may have. */
export const printable = (json: string): string => `encode(convert_to((${json})::text, 'UTF8'), 'hex')`;
export const parsed = <T>(lines: string[]): T[] =>
  lines.map((line) => JSON.parse(Buffer.from(line, "hex").toString()) as T);
