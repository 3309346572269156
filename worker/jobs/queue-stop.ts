import { sql, type SQL } from "drizzle-orm";
import type { Ctx } from "../ctx.ts";
import { ofTermed, queueJob } from "./insert.ts";
import { tableOf, type Termed } from "../db/resource.ts";

/** A job that stops the resource and keeps its data, if it has a host; `guard` refers to it as `r`. */
export const queueStop = (ctx: Ctx, kind: Termed, id: string, guard: SQL) =>
  queueJob(ctx, kind === "sites" ? "site.stop" : "database.stop", {
    ...ofTermed(kind),
    from: sql`${tableOf(kind)} r WHERE r.id = ${id} AND r.host_id IS NOT NULL AND ${guard}`,
  });
