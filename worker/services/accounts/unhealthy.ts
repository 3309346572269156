import { and, desc, eq, gt, sql } from "drizzle-orm";
import type { Domain } from "../../../protocol/api/domains.ts";
import type { Unhealthy } from "../../../protocol/api/diagnosis.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { databases, hosts, sites, siteVolumes } from "../../db/schema.ts";
import { databaseView, selectDatabases } from "../databases/view.ts";
import { selectRecords, siteView } from "../sites/view.ts";

const maxLooked = 500;
const notRunning = new Set<string>(["FAILED", "SUSPENDED", "PENDING"]);

type Failing = { volume: string; failure: string | null };

const failingBackups = (failing: Failing[]): string | null =>
  failing
    .map(({ volume, failure }) => `backups of its volume ${volume} are failing: ${failure}`)
    .join("; ") || null;

/** The most important problem of the first, which says what to do. */
function failingDomain(domains: readonly Domain[]): string | null {
  const failing = domains.find(({ status }) => status === "ERROR");
  return failing
    ? `its domain ${failing.displayName} is failing: ${failing.problems[0]?.message.replace(/\.$/, "")}`
    : null;
}

/** The account's sites and databases that are not well, with the reason. One that its owner stopped is well. */
export async function listUnhealthy(ctx: Ctx): Promise<Unhealthy> {
  const accountId = accountOf(ctx);
  const found = await batch(ctx, {
    sites: selectRecords(ctx.db)
      .where(eq(sites.accountId, accountId))
      .orderBy(desc(sites.id))
      .limit(maxLooked),
    databases: selectDatabases(ctx.db)
      .where(eq(databases.accountId, accountId))
      .orderBy(desc(databases.id))
      .limit(maxLooked),
    failing: ctx.db
      .select({
        siteId: siteVolumes.siteId,
        volume: siteVolumes.name,
        failure: siteVolumes.backupFailureReason,
      })
      .from(siteVolumes)
      .innerJoin(sites, eq(sites.id, siteVolumes.siteId))
      .where(and(eq(sites.accountId, accountId), gt(siteVolumes.backupFailures, 0)))
      .orderBy(siteVolumes.siteId, siteVolumes.name),
    checks: ctx.db
      .select({ siteId: sites.id, detail: sql<string>`c.value ->> 'detail'` })
      .from(sites)
      .innerJoin(hosts, eq(hosts.id, sites.hostId))
      .innerJoin(sql`json_each(${hosts.failingChecks}) c`, sql`c.value ->> 'siteId' = ${sites.id}`)
      .where(and(eq(sites.accountId, accountId), eq(sites.status, "RUNNING"))),
  });
  const ofSites = found.sites.flatMap((row) => {
    const {
      id,
      name,
      status,
      hostOffline,
      latestDeployment: latest,
      currentDeployment,
      domains,
    } = siteView(ctx, row);
    const reason =
      (hostOffline ? "its host is offline" : null) ??
      (notRunning.has(status) ? `it is ${status}` : null) ??
      (latest?.status === "FAILED" ? "its latest deployment failed" : null) ??
      currentDeployment?.error ??
      found.checks.find(({ siteId }) => siteId === id)?.detail ??
      failingDomain(domains) ??
      failingBackups(found.failing.filter(({ siteId }) => siteId === id));
    const error = latest?.error ?? currentDeployment?.error ?? null;
    return reason === null ? [] : [{ kind: "site" as const, id, name, status, reason, error }];
  });
  const ofDatabases = found.databases.flatMap((row) => {
    const { id, name, status, hostOffline, error, notice, backups } = databaseView(row);
    const reason =
      (hostOffline ? "its host is offline" : null) ??
      (notRunning.has(status) ? `it is ${status}` : null) ??
      notice ??
      (backups.failing ? `its backups are failing: ${backups.failing.reason}` : null) ??
      error;
    return reason === null ? [] : [{ kind: "database" as const, id, name, status, reason, error }];
  });
  return { data: [...ofSites, ...ofDatabases], looked: found.sites.length + found.databases.length };
}
