import { sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import { minReserveMb, preferMs, reserveParts } from "../../domain/placement.ts";

/** Of the pack it has and the one it is to have, the larger: what is to be paid has room when it is. */
const packMb = "(SELECT max(memory_mb) FROM packs WHERE id IN (placed.pack_id, placed.next_pack_id))";

/** Memory of host `h`'s databases, and of its sites: those placed there, on their way there, and not yet gone from there. */
export const placedMb = sql.raw(`(coalesce((
  SELECT sum(${packMb}) FROM sites placed
  WHERE placed.host_id = h.id OR placed.move_host_id = h.id OR placed.leaving_host_id = h.id), 0)
  + coalesce((SELECT sum(${packMb}) FROM databases placed
  WHERE placed.host_id = h.id), 0))`);

/** The same arithmetic as `freeMemoryMb`, where a reservation is made in one statement. */
export const freeMb = sql`(h.memory_mb - max(${sql.raw(String(minReserveMb))}, h.memory_mb / ${sql.raw(String(reserveParts))}) - ${placedMb})`;

/** Host `h` is told of new sites. */
export const takesSites = sql.raw(
  "h.status = 'ACTIVE' AND h.connected_at IS NOT NULL AND h.offline_since IS NULL AND h.memory_mb IS NOT NULL",
);

/** A query of the id of the host with the most room for site or database `s`, among those that `also` allows. */
const fittingHost = (s: string, also: SQL, first: SQL): SQL => sql`
  SELECT h.id FROM hosts h WHERE ${takesSites}
    AND (${sql.raw(s)}.region IS NULL OR h.region = ${sql.raw(s)}.region)
    AND ${freeMb} >= (SELECT memory_mb FROM packs WHERE id = ${sql.raw(s)}.pack_id)
    AND ${also}
  ORDER BY ${first}${freeMb} DESC, h.id LIMIT 1`;

/** For site `s`: where its databases are, as an account's network ends with the host. */
export const bestHostFor = (s: string, also: SQL): SQL =>
  fittingHost(
    s,
    sql`NOT EXISTS (SELECT 1 FROM database_links l JOIN databases d ON d.id = l.database_id
      WHERE l.site_id = ${sql.raw(s)}.id AND d.host_id <> h.id) AND ${also}`,
    sql``,
  );

/** For database `d`: where its sites are; otherwise rather beside the account's sites, which may be linked later. */
const bestHostForDatabase = (also: SQL): SQL =>
  fittingHost(
    "d",
    sql`NOT EXISTS (SELECT 1 FROM database_links l JOIN sites s ON s.id = l.site_id
      WHERE l.database_id = d.id AND s.host_id <> h.id) AND ${also}`,
    sql`(SELECT count(*) FROM sites WHERE host_id = h.id AND account_id = d.account_id) DESC, `,
  );

/** Whether this host may take the unplaced job `j`. */
export const mayPlace = (hostId: Id<"host">, now: number): SQL => {
  const here = sql`(j.created_at > ${now - preferMs} OR h.id = ${hostId})`;
  return sql`(EXISTS (
  SELECT 1 FROM sites s WHERE s.id = j.site_id AND s.host_id IS NULL AND ${hostId} = (${bestHostFor("s", here)}))
  OR EXISTS (
  SELECT 1 FROM databases d WHERE d.id = j.database_id AND d.host_id IS NULL AND ${hostId} = (${bestHostForDatabase(here)})))`;
};
