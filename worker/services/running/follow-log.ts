import type { ById, Resumed } from "../../../protocol/api/common.ts";
import type { SiteLogQuery } from "../../../protocol/api/running.ts";
import { LogPlace } from "../../../protocol/agent/running.ts";
import type { Id } from "../../../protocol/ids.ts";
import { readerOf, type Ctx } from "../../ctx.ts";
import { conflict } from "../../domain/app-error.ts";
import type { Hosted } from "./ask-host.ts";
import { siteAndMasks } from "./masks.ts";

/** Answers under way to a reader: 64 KiB of lines each, and as events at most six times as long. */
const window = 2;

/**
 * The log as server-sent events, after the last line the reader received. @throws AppError conflict if the log cannot
 * be followed now
 */
export async function followSiteLog(
  ctx: Ctx,
  { id, lastEventId, ...query }: ById & Resumed & SiteLogQuery,
): Promise<ReadableStream<Uint8Array>> {
  const { site, masks } = await siteAndMasks(ctx, id);
  return followLogOf(ctx, { ...site, noun: "site" }, query, { lastEventId, masks });
}

export async function followLogOf(
  ctx: Ctx,
  { id, hostId, noun }: Hosted & { noun: "site" | "database" },
  { tail, since }: SiteLogQuery,
  { lastEventId, masks }: { lastEventId: string | undefined; masks: string[] },
): Promise<ReadableStream<Uint8Array>> {
  if (hostId === null) throw conflict(`This ${noun} has not run yet, so there is no log to follow.`);
  const after = placeOn(hostId, lastEventId) ?? since ?? null;
  const question = { kind: "logs", siteId: id, tail, after, follow: true, window, masks } as const;
  const followed = await ctx.questions.follow(hostId, question, readerOf(ctx));
  if ("kind" in followed) throw conflict(followed.error);
  return followed;
}

/**
 * For a reader who followed the previous host, all lines on this host are new, since both ran in parallel for a while.
 */
function placeOn(hostId: Id<"host">, lastEventId = ""): string | undefined {
  const [place, readOn = hostId] = lastEventId.split("@");
  const known = LogPlace.safeParse(place).data;
  return known === undefined || readOn === hostId ? known : new Date(0).toISOString();
}
