import { and, desc, ne } from "drizzle-orm";
import type { ListQuery, Page } from "../../../protocol/api/common.ts";
import type { Host } from "../../../protocol/api/hosts.ts";
import type { Ctx } from "../../ctx.ts";
import { hosts } from "../../db/schema.ts";
import { before, page } from "../page.ts";
import { hostView, selectHosts } from "./view.ts";

export async function listHosts(ctx: Ctx, query: ListQuery): Promise<Page<Host>> {
  const rows = await selectHosts(ctx.db)
    .where(and(before(hosts.id, query), ne(hosts.status, "REMOVED")))
    .orderBy(desc(hosts.id))
    .limit(query.limit + 1);
  return page(rows, query, hostView);
}
