import { eq, getTableColumns, sql, type SQL } from "drizzle-orm";
import type { EnvEntry } from "../../../protocol/agent/jobs.ts";
import type { Ctx, Db } from "../../ctx.ts";
import { databaseLinks, databases } from "../../db/schema.ts";
import { startingKinds } from "../../db/job-conditions.ts";
import { addressOf } from "./logins.ts";
import type { DatabaseRow } from "../../db/rows.ts";

/** Statements for the batch that leases a job: marks the site's links it carries and reads the linked databases. */
export const offerLinks = (siteId: SQL, kind: SQL) => ({
  change: sql`
    UPDATE database_links SET offered_generation = (SELECT generation FROM databases WHERE id = database_id)
    WHERE site_id = ${siteId} AND ${kind} IN ${startingKinds}`,
  linked: (db: Db) =>
    db
      .select({ ...getTableColumns(databases), variable: databaseLinks.variable })
      .from(databaseLinks)
      .innerJoin(databases, eq(databases.id, databaseLinks.databaseId))
      .where(eq(databaseLinks.siteId, siteId)),
});

/** For the batch that ends a job which created the site's container: it runs with the links that the lease carried. */
export const linksFollowed = (ctx: Ctx, siteId: string, ended: SQL) =>
  ctx.db
    .update(databaseLinks)
    .set({ generation: sql`offered_generation` })
    .where(sql`${databaseLinks.siteId} = ${siteId} AND ${ended}`)
    .returning({ databaseId: databaseLinks.databaseId });

/** The addresses of a site's databases. They are set at run time only, because builds cannot reach databases. */
export const linkedEnvOf = (ctx: Ctx, linked: readonly (DatabaseRow & { variable: string })[]): EnvEntry[] =>
  linked.map(({ variable, ...database }) => ({
    key: variable,
    value: addressOf(ctx, database),
    scope: "runtime",
    secret: true,
  }));
