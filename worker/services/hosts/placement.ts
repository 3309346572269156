import { sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import { minReserveMb, preferMs, reserveParts } from "../../domain/placement.ts";

/** Memory of the sites on host `h`: those placed there, on their way there, and not yet gone from there. */
export const placedMb = sql.raw(`coalesce((
  SELECT sum(used.memory_mb) FROM sites placed JOIN packs used ON used.id = placed.pack_id
  WHERE placed.host_id = h.id OR placed.move_host_id = h.id OR placed.leaving_host_id = h.id), 0)`);

/** The same arithmetic as `freeMemoryMb`, where a reservation is made in one statement. */
export const freeMb = sql`(h.memory_mb - max(${sql.raw(String(minReserveMb))}, h.memory_mb / ${sql.raw(String(reserveParts))}) - ${placedMb})`;

/** Host `h` is told of new sites. */
export const takesSites = sql.raw(
  "h.status = 'ACTIVE' AND h.connected_at IS NOT NULL AND h.offline_since IS NULL AND h.memory_mb IS NOT NULL",
);

/** A query of the id of the host with the most room for site `s`, among those that `also` allows. */
export const bestHostFor = (s: string, also: SQL): SQL => sql`
  SELECT h.id FROM hosts h WHERE ${takesSites}
    AND (${sql.raw(s)}.region IS NULL OR h.region = ${sql.raw(s)}.region)
    AND ${freeMb} >= (SELECT memory_mb FROM packs WHERE id = ${sql.raw(s)}.pack_id)
    AND ${also}
  ORDER BY ${freeMb} DESC, h.id LIMIT 1`;

/** Whether this host may take the unplaced job `j`. */
export const mayPlace = (hostId: Id<"host">, now: number): SQL => sql`EXISTS (
  SELECT 1 FROM sites s WHERE s.id = j.site_id AND s.host_id IS NULL AND ${hostId} = (
    ${bestHostFor("s", sql`(j.created_at > ${now - preferMs} OR h.id = ${hostId})`)}))`;
