import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, sql } from "drizzle-orm";
import type { DatabaseLink, DatabaseLinkCreate } from "../../../protocol/api/databases.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { databaseLinks, databases, siteEnvVersions, sites } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { databaseEngines } from "../../domain/database-engines.ts";
import { idIn, requireOwned } from "../owned.ts";
import { newestEnv } from "../sites/view.ts";
import { databaseById } from "./owned.ts";

/**
 * Adds the database's connection string to the site as a secret variable that is updated when the password is rotated.
 */
export async function linkDatabase(
  ctx: Ctx,
  { id: databaseId, ...input }: ById & DatabaseLinkCreate,
): Promise<DatabaseLink> {
  const id = idIn("database", databaseId);
  // Query even for malformed ids, so that ownership of the database is checked first.
  const siteId = sql`${input.siteId}`;
  const {
    foundDatabase: [foundDatabase],
    foundSite: [foundSite],
    env: [env],
  } = await batch(ctx, {
    foundDatabase: databaseById(ctx, id),
    foundSite: ctx.db.select().from(sites).where(eq(sites.id, siteId)),
    env: ctx.db
      .select({ entries: siteEnvVersions.entries })
      .from(siteEnvVersions)
      .where(and(eq(siteEnvVersions.siteId, siteId), newestEnv)),
  });
  const database = requireOwned(ctx, foundDatabase);
  const site = requireOwned(ctx, foundSite);
  const variable = input.variable ?? databaseEngines[database.type].variable;
  if (env?.entries.some(({ key }) => key === variable))
    throw conflict(
      `${site.name} already has a variable ${variable}. Remove it, or choose another variable name.`,
    );
  if (isApart(database, site))
    throw conflict(
      `${database.name} and ${site.name} are on different hosts, which do not share a private network. Create a new database for this site, and link it before it is paid for, so that it is placed on the same host.`,
    );
  // The resource that is placed later is placed on the host of the other.
  const {
    made: [made],
  } = await batch(ctx, {
    made: ctx.db
      .insert(databaseLinks)
      .select(
        ctx.db
          .select({
            databaseId: databases.id,
            siteId: sql`${site.id}`.as("site_id"),
            variable: sql`${variable}`.as("variable"),
            offeredGeneration: sql`NULL`.as("offered_generation"),
            generation: sql`NULL`.as("generation"),
            createdAt: sql`${ctx.now().getTime()}`.as("created_at"),
          })
          .from(databases)
          .where(
            and(
              eq(databases.id, database.id),
              sql`${databases.status} <> 'DELETING'`,
              sql`NOT EXISTS (SELECT 1 FROM sites WHERE id = ${site.id} AND (status = 'DELETING'
              OR host_id <> ${databases.hostId} OR move_host_id <> ${databases.hostId}))`,
            ),
          ),
      )
      .onConflictDoNothing()
      .returning(),
  });
  if (!made)
    throw conflict(
      `${site.name} is already linked to this database, or to another one by the variable ${variable}, or the site or database is being moved or deleted. Check both, then try again.`,
    );
  return {
    databaseId: database.id,
    siteId: site.id,
    variable,
    restartRequired: site.currentDeploymentId !== null,
  };
}

const isApart = (database: { hostId: string | null }, site: { hostId: string | null }) =>
  database.hostId !== null && site.hostId !== null && database.hostId !== site.hostId;
