import { and, eq, inArray, sql, type SQL, type SQLWrapper } from "drizzle-orm";
import type { HeldDatabase, HeldSite, Inventory, Verdicts } from "../../../protocol/agent/inventory.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { databases, hosts, sites } from "../../db/schema.ts";
import { databaseEvents } from "../../domain/database-events.ts";
import { databaseVerdict, siteVerdict, type Known, type Place } from "../../domain/inventory.ts";
import { queueDatabaseJob } from "../../jobs/databases/queue.ts";
import { deploymentQueue } from "../../jobs/deployments/queue.ts";
import { queueSiteJob } from "../../jobs/sites/queue.ts";
import { queueRoutes } from "../../jobs/queue-routes.ts";
import { eachAlone } from "../../each-alone.ts";
import { idleLane, openJob } from "../../db/job-conditions.ts";
import { arePaymentsRead } from "../../billing/payments/read-events.ts";

/**
 * Another host's inventory counts only if it is this recent. After a restore of the database, the restored rows do not
 * count as an inventory.
 */
const lateMs = 25 * 60_000;
const hourMs = 3_600_000;
const dataLost =
  "The database's data is no longer on its host. Restore a backup into it, or ask the operator to bring the data back and then start it.";

/**
 * Compares a host's inventory with the record. The record is right about the desired state, the host about the actual one.
 * Invariants:
 * - Nothing is deleted. Anything unknown to the record is stopped and set aside until an operator removes it or a record
 *   assigns it to the host again.
 * - A version in service keeps serving until the recorded version is up; an unknown version is replaced by a swap.
 * - An inventory describes one moment (`asOf`). Resources that changed or had jobs since then, or have queued jobs, are
 *   skipped; each change checks this again in its own statement.
 * - Only inventories of the newest connection are applied, which `HostLink` ensures.
 * @param wasGiven whether the host was sent work on this database
 */
export async function compareHost(
  ctx: Ctx,
  hostId: Id<"host">,
  inventory: Inventory,
  wasGiven: (id: Id<"database">) => boolean,
): Promise<Omit<Verdicts, "type">> {
  // Hosts' clocks are not trusted.
  const asOf = Math.min(Date.parse(inventory.asOf), ctx.now().getTime());
  const known: Known = { arePaymentsRead: await arePaymentsRead(ctx, asOf) };
  const found = await readRecords(ctx, hostId, inventory, asOf);
  const setAside: Verdicts["setAside"] = [];
  const retire: Verdicts["retire"] = [];
  let unknownMb = 0;
  const lists = { setAside, retire };

  const heldSites = new Map(inventory.sites.map((one) => [one.id, one]));
  const siteRows = rowsOf(found.sites, heldSites, found.busy);
  await eachAlone("compare sites", siteRows, async ({ id, row, held, isBusy }) => {
    if (held && isUncounted(row)) unknownMb += held.memoryMb;
    if (!isBusy)
      await settleSite(ctx, { hostId, id, asOf, held, verdict: siteVerdict(row, held, known) }, lists);
  });
  const heldDatabases = new Map(inventory.databases.map((one) => [one.id, one]));
  const databaseRows = rowsOf(found.databases, heldDatabases, found.busy);
  await eachAlone("compare databases", databaseRows, async ({ id, row, held, isBusy }) => {
    if (held && isUncounted(row)) unknownMb += held.memoryMb;
    const verdict = databaseVerdict(row, held, known);
    if (!isBusy)
      await settleDatabase(ctx, { hostId, id, asOf, held, verdict, wasGiven: wasGiven(id) }, lists);
  });

  if (inventory.upTo === null) await repeatRoutes(ctx, hostId);
  await ctx.db
    .update(hosts)
    .set({
      unknownMb: inventory.after === null ? unknownMb : sql`unknown_mb + ${unknownMb}`,
      ...(inventory.upTo === null && { comparedAt: ctx.now() }),
    })
    .where(eq(hosts.id, hostId));
  ctx.hosts.wake(hostId);
  return lists;
}

/** Names and rules are in no inventory: those that the host did not take the last time are told again. */
async function repeatRoutes(ctx: Ctx, hostId: Id<"host">): Promise<void> {
  const failed = sql`EXISTS (SELECT 1 FROM jobs f WHERE f.lane = s.id || ':route' AND f.status = 'FAILED'
    AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.lane = f.lane AND j.seq > f.seq))`;
  const due = await ctx.db.all<{ id: Id<"site"> }>(
    sql`SELECT s.id FROM sites s WHERE s.host_id = ${hostId} AND ${failed} LIMIT 100`,
  );
  for (const { id } of due) await queueRoutes(ctx, id, failed);
}

/** Placement is unaware of the memory it uses here. */
const isUncounted = (row: { place: Place } | undefined): boolean =>
  !row || row.place === "elsewhere" || row.place === "nowhere";

type Lists = Omit<Verdicts, "type">;
type Found<Verdict, Held> = {
  hostId: Id<"host">;
  asOf: number;
  held: Held | undefined;
  verdict: Verdict;
};

async function settleSite(
  ctx: Ctx,
  { hostId, id, asOf, held, verdict }: Found<ReturnType<typeof siteVerdict>, HeldSite> & { id: Id<"site"> },
  { setAside, retire }: Lists,
): Promise<void> {
  const asItWas = sql`s.host_id = ${hostId} AND s.updated_at <= ${asOf} AND ${idleLane(sql`s.id`)}`;
  switch (verdict) {
    case "same":
      return;
    case "start":
    case "restart":
    case "stop":
      await ctx.db.batch([queueSiteJob(ctx, `site.${verdict}`, id, asItWas)]);
      return;
    case "deploy": {
      const mark = ctx.newMark();
      const moved = sql`(SELECT id FROM sites WHERE id = ${id} AND mark = ${mark})`;
      await batch(ctx, {
        moved: ctx.db
          .update(sites)
          .set({ status: "DEPLOYING", wanted: "RUNNING", mark, updatedAt: ctx.now() })
          .where(
            and(
              eq(sites.id, id),
              eq(sites.status, "FAILED"),
              sql`EXISTS (SELECT 1 FROM sites s WHERE s.id = ${id} AND ${asItWas})`,
            ),
          ),
        queue: deploymentQueue(moved)(ctx, { trigger: "api" }),
      });
      return;
    }
    case "setAside":
      setAside.push(id);
      return;
    case "retire":
      retire.push({ siteId: id, containerIds: held?.unrouted.map(({ containerId }) => containerId) ?? [] });
  }
}

async function settleDatabase(
  ctx: Ctx,
  {
    hostId,
    id,
    asOf,
    held,
    verdict,
    wasGiven,
  }: Found<ReturnType<typeof databaseVerdict>, HeldDatabase> & { id: Id<"database">; wasGiven: boolean },
  { setAside }: Lists,
): Promise<void> {
  const asItWas = (d: string): SQL => {
    const row = sql.raw(d);
    return sql`coalesce(${row}.host_id, ${hostId}) = ${hostId} AND ${row}.updated_at <= ${asOf} AND ${idleLane(sql`${row}.id`)}`;
  };
  switch (verdict) {
    case "same":
      return;
    case "start":
    case "stop":
      await ctx.db.batch([queueDatabaseJob(ctx, `database.${verdict}`, id, asItWas("d"))]);
      return;
    case "adopt": {
      const mark = ctx.newMark();
      await ctx.db.batch([
        ctx.db
          .update(databases)
          .set({ hostId, volume: (held?.volumes[0] ?? null) as Id<"job"> | null, mark, updatedAt: ctx.now() })
          .where(and(eq(databases.id, id), asItWas("databases"))),
        queueDatabaseJob(
          ctx,
          "database.start",
          id,
          sql`d.mark = ${mark} AND d.wanted = 'RUNNING' AND d.status IN ('RUNNING', 'FAILED')`,
        ),
      ]);
      return;
    }
    case "lost":
      await ctx.db
        .update(databases)
        .set({ status: databaseEvents.dataLost.to, error: dataLost, updatedAt: ctx.now() })
        .where(
          and(
            eq(databases.id, id),
            inArray(databases.status, [...databaseEvents.dataLost.from]),
            asItWas("databases"),
          ),
        );
      return;
    case "setAside":
      // It is provisioned on the host with its data once it is paid for, and gets its passwords there.
      if (wasGiven)
        await ctx.db
          .update(databases)
          .set({ hostId })
          .where(and(eq(databases.id, id), eq(databases.status, "PENDING"), sql`host_id IS NULL`));
      setAside.push(id);
  }
}

/**
 * Everything that the record assigns to this host in the inventory's id range, and everything else it knows about the
 * inventory's entries.
 */
async function readRecords(ctx: Ctx, hostId: Id<"host">, inventory: Inventory, asOf: number) {
  const { after, upTo } = inventory;
  const ids = JSON.stringify([...inventory.sites, ...inventory.databases].map(({ id }) => id));
  const isHeld = (id: SQLWrapper) => sql`${id} IN (SELECT value FROM json_each(${ids}))`;
  const isHere = (id: SQL, host: SQL) =>
    sql`${host} = ${hostId} AND ${id} > ${after ?? ""} AND (${upTo} IS NULL OR ${id} <= ${upTo})`;
  // For resources elsewhere, the other host's recent inventory counts.
  const place = (row: string) => sql<Place>`CASE
    WHEN ${sql.raw(row)}.host_id IS NULL THEN 'nowhere' WHEN ${sql.raw(row)}.host_id = ${hostId} THEN 'here'
    WHEN EXISTS (SELECT 1 FROM hosts h WHERE h.id = ${sql.raw(row)}.host_id AND h.compared_at > ${ctx.now().getTime() - lateMs})
    THEN 'elsewhere' ELSE 'unclear' END`;
  const worked = (idOf: SQL) => sql`EXISTS (SELECT 1 FROM jobs j WHERE ${idOf}
    AND (j.${openJob} OR j.finished_at >= ${asOf}) AND j.kind <> 'site.command')`;
  const { siteRows, databaseRows, busy } = await batch(ctx, {
    siteRows: ctx.db
      .select({
        id: sites.id,
        status: sites.status,
        wanted: sites.wanted,
        currentDeploymentId: sites.currentDeploymentId,
        place:
          sql<Place>`CASE WHEN ${sites.moveHostId} IS NOT NULL OR ${sites.leavingHostId} IS NOT NULL THEN 'unclear' ELSE ${place("sites")} END`.as(
            "place",
          ),
        hasFailed:
          sql<number>`EXISTS (SELECT 1 FROM deployments d WHERE d.id = sites.current_deployment_id AND d.error IS NOT NULL)`
            .mapWith(Boolean)
            .as("has_failed"),
        wasDeployedLately:
          sql<number>`EXISTS (SELECT 1 FROM deployments d WHERE d.site_id = sites.id AND d.created_at > ${ctx.now().getTime() - hourMs})`
            .mapWith(Boolean)
            .as("was_deployed_lately"),
        changed: sql<number>`${sites.updatedAt} > ${asOf}`.mapWith(Boolean).as("changed"),
      })
      .from(sites)
      .where(sql`(${isHere(sql`sites.id`, sql`sites.host_id`)}) OR ${isHeld(sites.id)}`),
    databaseRows: ctx.db
      .select({
        id: databases.id,
        status: databases.status,
        wanted: databases.wanted,
        volume: databases.volume,
        wasHere:
          sql<number>`coalesce(${databases.lostWith} = (SELECT token_hash FROM hosts WHERE id = ${hostId}), 0)`
            .mapWith(Boolean)
            .as("was_here"),
        hasRun: sql<number>`${databases.version} IS NOT NULL`.mapWith(Boolean).as("has_run"),
        place: place("databases").as("place"),
        changed: sql<number>`${databases.updatedAt} > ${asOf}`.mapWith(Boolean).as("changed"),
      })
      .from(databases)
      .where(sql`(${isHere(sql`databases.id`, sql`databases.host_id`)}) OR ${isHeld(databases.id)}`),
    busy: ctx.statement(sql`
      SELECT id FROM (
        SELECT value AS id FROM json_each(${ids})
        UNION SELECT id FROM sites WHERE ${isHere(sql`id`, sql`host_id`)}
        UNION SELECT id FROM databases WHERE ${isHere(sql`id`, sql`host_id`)}) one
      WHERE ${worked(sql`j.site_id = one.id`)} OR ${worked(sql`j.database_id = one.id`)}`),
  });
  const busyIds = new Set((busy.results as { id: string }[]).map(({ id }) => id));
  for (const { id, changed } of [...siteRows, ...databaseRows]) if (changed) busyIds.add(id);
  return { sites: siteRows, databases: databaseRows, busy: busyIds };
}

/** Each id once, with its record and its state on the host. */
function rowsOf<Row extends { id: string }, Held extends { id: Row["id"] }>(
  rows: readonly Row[],
  held: ReadonlyMap<Row["id"], Held>,
  busy: ReadonlySet<string>,
) {
  const byId = new Map(rows.map((row) => [row.id, row]));
  const ids = new Set<Row["id"]>([...byId.keys(), ...held.keys()]);
  return [...ids].map((id) => ({
    id,
    row: byId.get(id),
    held: held.get(id),
    isBusy: busy.has(id),
  }));
}
