import { sql, type SQL, type SQLWrapper } from "drizzle-orm";
import { minReserveMb, preferMs, reserveParts } from "../../domain/placement.ts";
import type { Termed } from "../../db/resource.ts";
import { idleLane, openJob, startingKinds } from "../../db/job-conditions.ts";

/** The next pack, if it is paid for or being paid. An unpaid change reserves nothing. */
const promisedPackOf = (
  row: string,
) => `iif(${row}.next_pack_id IS NOT NULL AND (${row}.next_pack_at IS NOT NULL OR EXISTS (
  SELECT 1 FROM invoices i JOIN checkouts c ON c.invoice_id = i.id AND c.status IN ('opening', 'open', 'processing')
  WHERE i.resource_id = ${row}.id AND i.kind IN ('change', 'renewal') AND i.status = 'unpaid')), ${row}.next_pack_id, NULL)`;

/** Memory of the larger of the current and the promised pack. A subquery in FROM, like `hostRoomsText`. */
export const packMbOf = (row: string) =>
  `(SELECT mb FROM (SELECT max(memory_mb) AS mb FROM packs WHERE id IN (${row}.pack_id, ${promisedPackOf(row)})))`;
const packMb = packMbOf("placed");

/**
 * Memory reserved on host `h` in MB: its databases, its sites (placed, arriving or not yet evicted), and unrecorded
 * resources that run there.
 */
const placedMbText = `(coalesce((
  SELECT sum(${packMb}) FROM sites placed
  WHERE (placed.move_host_id = h.id OR placed.host_id = h.id OR placed.leaving_host_id = h.id)
    AND (placed.reserved OR placed.move_host_id = h.id)), 0)
  + coalesce((SELECT sum(${packMb}) FROM databases placed
  WHERE placed.host_id = h.id), 0) + h.unknown_mb)`;
export const placedMb = sql.raw(placedMbText);

/** Memory of host `h` in MB, as `usableMemoryMb` has it. */
export const usableMb = (h: string) => `min(${h}.memory_mb, coalesce(${h}.memory_limit_mb, ${h}.memory_mb))`;
const hostMb = usableMb("h");

/**
 * Hosts with their free memory, by the same arithmetic as `freeMemoryMb`, so that one statement can reserve it.
 * Subqueries in FROM do not count towards D1's limit of 100 expression levels.
 */
const hostRoomsText = `(SELECT h.*, ${hostMb} - max(${minReserveMb}, ${hostMb} / ${reserveParts}) - ${placedMbText} AS free_mb
  FROM hosts h)`;
export const hostRooms = sql.raw(hostRoomsText);

/** Whether host `h` accepts new sites, if its disk allows. */
export const isUp = sql.raw(
  "h.status = 'ACTIVE' AND h.connected_at IS NOT NULL AND h.offline_since IS NULL AND h.memory_mb IS NOT NULL",
);
/** Whether host `h` has the free disk space that a deployment needs, or does not say. */
export const hasDisk = sql.raw("coalesce(h.disk_free_mb >= h.disk_needed_mb, 1)");

/**
 * Selects the id of the host with the most free memory for site or database `s`, among those that satisfy `also`.
 * Free memory is summed up once per statement, however many rows need a host.
 */
const fittingHost = (s: string, also: SQL, first: SQL): SQL => sql`
  WITH rooms AS MATERIALIZED (SELECT h.* FROM ${hostRooms} h WHERE ${isUp} AND ${hasDisk})
  SELECT h.id FROM rooms h WHERE (${sql.raw(s)}.region IS NULL OR h.region = ${sql.raw(s)}.region)
    AND h.free_mb >= ${sql.raw(packMbOf(s))}
    AND ${also}
  ORDER BY ${first}h.free_mb DESC, h.id LIMIT 1`;

/** What site or database `row` is linked to and is placed already. */
export const linkedTo = (kind: Termed, row: string): SQL =>
  sql.raw(
    kind === "sites"
      ? `(SELECT d.name, d.host_id FROM database_links l JOIN databases d ON d.id = l.database_id
        WHERE l.site_id = ${row}.id AND d.host_id IS NOT NULL)`
      : `(SELECT s.name, s.host_id FROM database_links l JOIN sites s ON s.id = l.site_id
        WHERE l.database_id = ${row}.id AND s.host_id IS NOT NULL)`,
  );
/** Whether host `h` has all that `row` is linked to, because an account's network does not span hosts. */
export const hasLinked = (kind: Termed, row: string): SQL =>
  sql`NOT EXISTS (SELECT 1 FROM ${linkedTo(kind, row)} o WHERE o.host_id <> h.id)`;

export const bestHostFor = (s: string, also: SQL): SQL =>
  fittingHost(s, sql`${hasLinked("sites", s)} AND ${also}`, sql``);

/** Prefers a host with sites of database `d`'s account, which may be linked later. */
const bestHostForDatabase = (also: SQL): SQL =>
  fittingHost(
    "d",
    sql`${hasLinked("databases", "d")} AND ${also}`,
    sql`(SELECT count(*) FROM sites WHERE host_id = h.id AND account_id = d.account_id) DESC, `,
  );

/** Whether this host may take the unplaced job `j`. */
export const mayPlace = (hostId: SQLWrapper, now: SQLWrapper): SQL => {
  const here = sql`(j.created_at > ${now} - ${sql.raw(String(preferMs))} OR h.id = ${hostId})`;
  return sql`(EXISTS (
  SELECT 1 FROM sites s WHERE s.id = j.site_id AND s.host_id IS NULL AND ${hostId} = (${bestHostFor("s", here)}))
  OR EXISTS (
  SELECT 1 FROM databases d WHERE d.id = j.database_id AND d.host_id IS NULL AND ${hostId} = (${bestHostForDatabase(here)})))`;
};

/** Whether some host may take the unplaced job `j` now, were a slot free there. */
export const hasPlace = sql`(EXISTS (
  SELECT 1 FROM sites s WHERE s.id = j.site_id AND (${bestHostFor("s", sql`1`)}) IS NOT NULL)
  OR EXISTS (
  SELECT 1 FROM databases d WHERE d.id = j.database_id AND (${bestHostForDatabase(sql`1`)}) IS NOT NULL))`;

const hasRoomAt = (s: string): SQL =>
  sql.raw(
    `EXISTS (SELECT 1 FROM ${hostRoomsText} h WHERE h.id = ${s}.host_id AND h.free_mb >= ${packMbOf(s)})`,
  );

/** Whether job `j` would start a site whose host has no memory left since the site gave up its reservation. */
export const waitsForRoom = sql`(j.kind IN ${startingKinds} AND EXISTS (
  SELECT 1 FROM sites s WHERE s.id = j.site_id AND s.host_id = j.host_id AND NOT s.reserved AND NOT ${hasRoomAt("s")}))`;

/** Whether the host of job `j` takes none: its engine does not answer, or its agent is being replaced. */
export const hostIsClosed = sql`EXISTS (SELECT 1 FROM hosts WHERE id = j.host_id AND slots = 0)`;

/**
 * For an UPDATE of `sites` that lets a site run again after it gave up its reservation: it reserves memory on its
 * host. If there is none and the site has no data there, it gives up the host and is placed again; otherwise it waits.
 */
export function roomAgain(now: SQLWrapper) {
  const bound = sql`(sites.leaving_host_id IS NOT NULL OR sites.move_host_id IS NOT NULL
    OR EXISTS (SELECT 1 FROM site_volumes WHERE site_id = sites.id)
    OR EXISTS (SELECT 1 FROM database_links WHERE site_id = sites.id))`;
  const leaves = sql`(NOT sites.reserved AND sites.host_id IS NOT NULL AND NOT ${hasRoomAt("sites")} AND NOT ${bound} AND ${idleLane(sql`sites.id`)})`;
  return {
    leaves,
    set: {
      reserved: sql`sites.reserved OR ${hasRoomAt("sites")}`,
      leavingHostId: sql`CASE WHEN ${leaves} THEN sites.host_id ELSE sites.leaving_host_id END`,
      leaveAt: sql`CASE WHEN ${leaves} THEN ${now} ELSE sites.leave_at END`,
      hostId: sql`CASE WHEN ${leaves} THEN NULL ELSE sites.host_id END`,
    },
  };
}

/** For one batch, after the lease's mark: a job that starts a site reserves its memory from the lease on. */
export const takeRoom = (siteId: SQL, hostId: SQLWrapper, kind: SQL): SQL => sql`
  UPDATE sites SET reserved = 1
  WHERE id = ${siteId} AND host_id = ${hostId} AND NOT reserved AND ${kind} IN ${startingKinds}`;

/** A FAILED site runs nothing: its memory is released unless a job is about to start it. */
export const giveRoomAway = (which: SQL): SQL => sql`
  UPDATE sites SET reserved = 0
  WHERE ${which} AND status = 'FAILED' AND NOT serving AND reserved AND NOT EXISTS (
    SELECT 1 FROM jobs WHERE lane = sites.id AND kind IN ${startingKinds} AND ${openJob})`;
