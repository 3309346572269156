import { and, eq, sql } from "drizzle-orm";
import type { DatabaseLink, DatabaseLinkCreate } from "../../../protocol/api/databases.ts";
import type { Ctx } from "../../ctx.ts";
import { databaseLinks, databases, siteEnvVersions, sites } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { databaseEngines } from "../../domain/database-engines.ts";
import { requireOwned } from "../owned.ts";
import { newestEnv } from "../sites/view.ts";
import { databaseById, databaseIdOf } from "./owned.ts";

/** The site is given the database's address as a secret variable that follows the password. */
export async function linkDatabase(
  ctx: Ctx,
  databaseId: string,
  input: DatabaseLinkCreate,
): Promise<DatabaseLink> {
  const id = databaseIdOf(databaseId);
  // A text that is no site's id is looked for as well: whose database this is comes first.
  const siteId = sql`${input.siteId}`;
  const [[foundDatabase], [foundSite], [env]] = await ctx.db.batch([
    databaseById(ctx, id),
    ctx.db.select().from(sites).where(eq(sites.id, siteId)),
    ctx.db
      .select({ entries: siteEnvVersions.entries })
      .from(siteEnvVersions)
      .where(and(eq(siteEnvVersions.siteId, siteId), newestEnv)),
  ]);
  const database = requireOwned(ctx, foundDatabase);
  const site = requireOwned(ctx, foundSite);
  const variable = input.variable ?? databaseEngines[database.type].variable;
  if (env?.entries.some(({ key }) => key === variable))
    throw conflict(`${site.name} has a variable ${variable} already: remove it, or name another variable.`);
  if (isApart(database, site))
    throw conflict(
      `${database.name} and ${site.name} are on different hosts, and the private network does not reach from one to the other: create a database for this site before it is paid for, so that it is placed beside it.`,
    );
  // Whoever is placed later is placed beside the other.
  const [made] = await ctx.db
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
    .returning();
  if (!made)
    throw conflict(
      `${site.name} is linked to this database, or to another by the variable ${variable}, or one of the two is being moved or deleted: look, then try again.`,
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
