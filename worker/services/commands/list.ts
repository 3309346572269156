import { and, desc, eq } from "drizzle-orm";
import type { Command, CommandListQuery } from "../../../protocol/api/commands.ts";
import type { ById, Page } from "../../../protocol/api/common.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { commands } from "../../db/schema.ts";
import { idIn, ownedWith } from "../owned.ts";
import { before, page } from "../page.ts";
import { siteById } from "../sites/owned.ts";
import { commandView, selectCommands } from "./view.ts";

/** A site's commands, newest first, optionally of one schedule only. */
export async function listCommands(
  ctx: Ctx,
  { id: siteId, ...query }: ById & CommandListQuery,
): Promise<Page<Command>> {
  const id = idIn("site", siteId);
  const { scheduleId } = query;
  const { rows } = await ownedWith(ctx, siteById(ctx, id), {
    rows: selectCommands(ctx.db)
      .where(
        and(
          eq(commands.siteId, id),
          scheduleId === undefined ? undefined : eq(commands.scheduleId, scheduleId as Id<"schedule">),
          before(commands.id, query),
        ),
      )
      .orderBy(desc(commands.id))
      .limit(query.limit + 1),
  });
  return page(rows, query, commandView);
}
