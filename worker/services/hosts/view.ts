import { getTableColumns, sql } from "drizzle-orm";
import type { Host } from "../../../protocol/api/hosts.ts";
import type { Db } from "../../ctx.ts";
import { hosts } from "../../db/schema.ts";
import { addressesOf, forwardingNotice } from "../../domain/host-addresses.ts";
import { hostProblems } from "../../domain/host-problems.ts";
import { isoTime } from "../../domain/iso-time.ts";
import { freeMemoryMb, usableMemoryMb } from "../../domain/placement.ts";
import { drainNotice } from "../../domain/volume-notice.ts";
import { linkedTo, placedMb } from "../../jobs/hosts/placement.ts";

/** Hosts with everything in their public representation, in one statement. */
export const selectHosts = (db: Db) =>
  db
    .select({
      ...getTableColumns(hosts),
      placedMb: sql<number>`(SELECT ${placedMb} FROM hosts h WHERE h.id = ${sql.raw("hosts.id")})`.as(
        "placed_mb",
      ),
      siteCount: sql<number>`(SELECT count(*) FROM sites WHERE host_id = ${sql.raw("hosts.id")})`.as(
        "site_count",
      ),
      volumeSiteCount: sql<number>`(
        SELECT count(*) FROM sites WHERE host_id = ${sql.raw("hosts.id")}
          AND EXISTS (SELECT 1 FROM site_volumes WHERE site_id = sites.id))`.as("volume_site_count"),
      linkedSiteCount: sql<number>`(
        SELECT count(*) FROM sites WHERE host_id = ${sql.raw("hosts.id")}
          AND NOT EXISTS (SELECT 1 FROM site_volumes WHERE site_id = sites.id)
          AND EXISTS (SELECT 1 FROM ${linkedTo("sites", "sites")}))`.as("linked_site_count"),
      databaseCount: sql<number>`(SELECT count(*) FROM databases WHERE host_id = ${sql.raw("hosts.id")})`.as(
        "database_count",
      ),
    })
    .from(hosts);

export const hostView = (row: Awaited<ReturnType<typeof selectHosts>>[number]): Host => ({
  id: row.id,
  name: row.name,
  status: row.status,
  region: row.region,
  connected: row.status !== "REMOVED" && row.connectedAt !== null && row.offlineSince === null,
  offlineSince: isoTime(row.offlineSince),
  agentVersion: row.agentVersion,
  cpuCount: row.cpuCount,
  memoryMb: usableMemoryMb(row),
  freeMemoryMb: freeMemoryMb(usableMemoryMb(row), row.placedMb),
  diskFreeMb: row.diskFreeMb,
  siteCount: row.siteCount,
  volumeSiteCount: row.volumeSiteCount,
  linkedSiteCount: row.linkedSiteCount,
  databaseCount: row.databaseCount,
  notice: drainNotice(row.status, row),
  problems: hostProblems(row),
  ingressReplacedAt: isoTime(row.ingressReplacedAt),
  ...addressesOf(row),
  forwardingNotice: forwardingNotice(row),
  createdAt: isoTime(row.createdAt),
  connectedAt: isoTime(row.connectedAt),
});
