import { Timestamp } from "../../../protocol/api/common.ts";
import type { SiteLogQuery } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../context.ts";
import { conflict } from "../../domain/app-error.ts";
import { databaseOwnedBy } from "./owned.ts";

/** The server's log as server-sent events, after the last line the reader has. @throws AppError conflict when nobody can follow it now */
export async function followDatabaseLog(
  ctx: Ctx,
  databaseId: string,
  { tail, since }: SiteLogQuery,
  lastEventId: string | undefined,
): Promise<ReadableStream<Uint8Array>> {
  const { id, hostId } = await databaseOwnedBy(ctx, databaseId);
  if (hostId === null) throw conflict("This database has not run yet: there is nothing to follow.");
  const after = Timestamp.safeParse(lastEventId).data ?? since ?? null;
  const followed = await ctx.questions.follow(hostId, {
    kind: "logs",
    siteId: id,
    tail,
    after,
    follow: true,
    masks: [],
  });
  if ("kind" in followed) throw conflict(followed.error);
  return followed;
}
