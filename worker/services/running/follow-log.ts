import type { SiteLogQuery } from "../../../protocol/api/running.ts";
import { Timestamp } from "../../../protocol/api/common.ts";
import type { Ctx } from "../../context.ts";
import { conflict } from "../../domain/app-error.ts";
import { siteAndMasks } from "./masks.ts";

/** The log as server-sent events, after the last line the reader has. @throws AppError conflict when nobody can follow it now */
export async function followSiteLog(
  ctx: Ctx,
  siteId: string,
  { tail, since }: SiteLogQuery,
  lastEventId: string | undefined,
): Promise<ReadableStream<Uint8Array>> {
  const { site, masks } = await siteAndMasks(ctx, siteId);
  if (site.hostId === null) throw conflict("This site has not run yet: there is nothing to follow.");
  const resumed = Timestamp.safeParse(lastEventId);
  const followed = await ctx.questions.follow(site.hostId, {
    kind: "logs",
    siteId: site.id,
    tail,
    after: resumed.data ?? since ?? null,
    follow: true,
    masks,
  });
  if ("kind" in followed) throw conflict(followed.error);
  return followed;
}
