import type { ById, Resumed } from "../../../protocol/api/common.ts";
import type { RequestQuery, SiteRequests } from "../../../protocol/api/requests.ts";
import type { Id } from "../../../protocol/ids.ts";
import { readerOf, type Ctx } from "../../ctx.ts";
import { conflict } from "../../domain/app-error.ts";
import { page } from "../page.ts";
import { siteOwnedBy } from "../sites/owned.ts";
import { askHostOf } from "./ask-host.ts";

type Asked = ById & Resumed & RequestQuery;

/** The site's latest requests, newest first, or a live stream of server-sent events. */
export async function getSiteRequests(
  ctx: Ctx,
  { id: siteId, lastEventId, follow, limit, cursor, ...filters }: Asked,
): Promise<SiteRequests | ReadableStream<Uint8Array>> {
  const { id, hostId } = await siteOwnedBy(ctx, siteId);
  const question = { kind: "requests", siteId: id, filters } as const;
  if (follow !== "1") {
    const place = cursor === undefined ? null : Number(cursor);
    const asked = { ...question, limit: limit + 1, place, follow: false };
    const answer = await askHostOf<"requests">(ctx, { id, hostId }, asked);
    return page(answer?.requests ?? [], { limit }, (one) => one);
  }
  if (hostId === null) throw conflict("This site has not run yet, so there are no requests to follow.");
  const place = placeOn(hostId, lastEventId);
  const followed = await ctx.questions.follow(
    hostId,
    { ...question, limit, place, follow: true },
    readerOf(ctx),
  );
  if ("kind" in followed) throw conflict(followed.error);
  return followed;
}

/** Another host has numbers of its own. */
function placeOn(hostId: Id<"host">, lastEventId = ""): number | null {
  const [, number, readOn] = /^(\d{1,15})@(.+)$/.exec(lastEventId) ?? [];
  return number !== undefined && readOn === hostId ? Number(number) : null;
}
