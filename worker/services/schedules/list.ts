import { and, desc, eq } from "drizzle-orm";
import type { ById, ListQuery, Page } from "../../../protocol/api/common.ts";
import type { Schedule } from "../../../protocol/api/schedules.ts";
import type { Ctx } from "../../ctx.ts";
import { schedules } from "../../db/schema.ts";
import { idIn, ownedWith } from "../owned.ts";
import { before, page } from "../page.ts";
import { siteById } from "../sites/owned.ts";
import { scheduleView, selectSchedules } from "./view.ts";

/** A site's schedules, newest first. */
export async function listSchedules(
  ctx: Ctx,
  { id: siteId, ...query }: ById & ListQuery,
): Promise<Page<Schedule>> {
  const id = idIn("site", siteId);
  const { rows } = await ownedWith(ctx, siteById(ctx, id), {
    rows: selectSchedules(ctx.db)
      .where(and(eq(schedules.siteId, id), before(schedules.id, query)))
      .orderBy(desc(schedules.id))
      .limit(query.limit + 1),
  });
  return page(rows, query, (row) => scheduleView(row, ctx.now()));
}
