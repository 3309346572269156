import { sql, type SQL } from "drizzle-orm";
import type { Ctx } from "../ctx.ts";
import { ofTermed, queueJob } from "./insert.ts";
import { tableOf, type Termed } from "../db/resource.ts";

/** A job that starts a site's version in service or a database with its data, on its host; `guard` refers to it as `r`. */
export const queueStart = (ctx: Ctx, kind: Termed, id: string, guard: SQL) =>
  queueJob(ctx, kind === "sites" ? "site.start" : "database.start", {
    ...ofTermed(kind),
    ...(kind === "sites" && { deploymentId: sql`r.current_deployment_id` }),
    from: sql`${tableOf(kind)} r WHERE r.id = ${id} AND r.host_id IS NOT NULL
      AND ${kind === "sites" ? sql`r.current_deployment_id` : sql`r.version`} IS NOT NULL AND ${guard}`,
  });
