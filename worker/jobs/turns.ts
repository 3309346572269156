import { sql, type SQL, type SQLWrapper } from "drizzle-orm";
import { kindsThat, takenCommands, takenJobs } from "../db/job-conditions.ts";
import { mayPlace, waitsForRoom } from "./hosts/placement.ts";
import { databaseWaitMs, waitsForOthersMs } from "../domain/job-rules.ts";

/**
 * The number of latest leases per host and kind of slot whose accounts count as recently served; other accounts come
 * first.
 */
const remembered = 16;

const shortKinds = kindsThat(({ slot }) => slot === "short");
const buildingKinds = kindsThat(({ slot }) => slot === "job");

/** Commands and short jobs have slots of their own. */
export const slotOf = (job: string): SQL =>
  sql.raw(
    `CASE WHEN ${job}.kind = 'site.command' THEN 'command' WHEN ${job}.kind IN ${shortKinds} THEN 'short' ELSE 'job' END`,
  );

/**
 * Accounts with work under way or a recent turn on this host: account, slot, number of jobs, how many of these build,
 * and time of the last turn.
 */
export function servedOn(hostId: SQLWrapper): SQL {
  const columns = sql`t.id, t.account_id, ${slotOf("t")} AS slot, t.status = 'LEASED' AS leased,
    t.status = 'LEASED' AND t.kind IN ${sql.raw(buildingKinds)} AS building, t.leased_at AS turn_at`;
  const last = (which: string) => sql`
    SELECT * FROM (SELECT ${columns} FROM jobs t WHERE t.host_id = ${hostId} AND ${sql.raw(which)}
      ORDER BY t.leased_at DESC LIMIT ${sql.raw(String(remembered))})`;
  return sql`served AS MATERIALIZED (
    SELECT account_id, slot, sum(leased) AS leased, sum(building) AS building, max(turn_at) AS turn_at FROM (
      SELECT ${columns} FROM jobs t WHERE t.status = 'LEASED' AND t.host_id = ${hostId}
      UNION ${last(takenJobs)} UNION ${last(takenCommands)})
    GROUP BY account_id, slot)`;
}

/** Whether job `j`'s account had no recent turn. */
export const hadNoTurn = sql`NOT EXISTS (SELECT 1 FROM served v WHERE v.account_id = j.account_id AND v.slot = ${slotOf("j")})`;

/**
 * Whether job `j` would take the last of several slots for its account `v`, which builds or runs a command here already:
 * that slot stays free for others, whose jobs would otherwise wait for the end of a build or command.
 */
export const takesAll = (isLastSlot: SQLWrapper, isLastCommand: SQLWrapper, hostId: SQLWrapper): SQL => sql`(
  ${isLastSlot} AND v.building > 0 AND j.kind IN ${sql.raw(buildingKinds)}
  AND (SELECT slots FROM hosts WHERE id = ${hostId}) > 1
  OR ${isLastCommand} AND v.leased > 0 AND j.kind = 'site.command')`;

/** How many of host `h`'s slots stay free for others while job `j`'s account builds there. */
export const keptForOthers = sql.raw(`(h.slots > 1 AND EXISTS (
  SELECT 1 FROM jobs b WHERE b.status = 'LEASED' AND b.host_id = h.id AND b.account_id = j.account_id
    AND b.kind IN ${buildingKinds}))`);

/**
 * Whether another account's job waits for host `h` as job `j` does. Two ranges of one index, so that the account's
 * own queue length does not matter.
 */
export const othersWait = sql.raw(
  ["<", ">"]
    .map(
      (
        side,
      ) => `EXISTS (SELECT 1 FROM jobs w WHERE w.status = 'QUEUED' AND w.host_id = h.id AND w.account_id ${side} j.account_id
        AND w.kind NOT IN ${shortKinds} AND w.kind <> 'site.command')`,
    )
    .join(" OR "),
);

/**
 * Whether job `j` deploys a site one of whose databases is being created: apps that need it would fail their first
 * start. A version that has run before waits for nothing.
 */
const usesNewDatabase = sql`(j.kind = 'site.deploy' AND EXISTS (
  SELECT 1 FROM database_links k JOIN databases p ON p.id = k.database_id JOIN deployments v ON v.id = j.deployment_id
  WHERE k.site_id = j.site_id AND p.status = 'PROVISIONING' AND v."trigger" NOT IN ('rollback', 'move')))`;

/** The database may have to wait for a host itself. */
export const waitsForDatabase = (now: SQLWrapper): SQL =>
  sql`(j.created_at > ${now} - ${sql.raw(String(databaseWaitMs))} AND ${usesNewDatabase})`;

/** Whether this row of `jobs` waits only for others' work: its turn comes, because every lease ends. */
export const waitsForOthers = (nowMs: number): SQL => sql`(
  status = 'QUEUED' AND created_at > ${nowMs - waitsForOthersMs} AND EXISTS (
    SELECT 1 FROM jobs j JOIN jobs l ON l.status = 'LEASED' AND l.account_id <> j.account_id AND ${slotOf("l")} = ${slotOf("j")}
    JOIN hosts g ON g.id = l.host_id AND g.connected_at IS NOT NULL AND g.offline_since IS NULL
    WHERE j.id = jobs.id AND (l.host_id = j.host_id AND NOT ${waitsForRoom}
      OR j.host_id IS NULL AND ${mayPlace(sql`l.host_id`, sql`${nowMs}`)})))`;
