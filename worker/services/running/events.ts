import type { ById } from "../../../protocol/api/common.ts";
import type { EventsQuery, SiteEvent, SiteEvents } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../ctx.ts";
import { idIn, ownedWith } from "../owned.ts";
import { siteById } from "../sites/owned.ts";
import { askHostOf } from "./ask-host.ts";
import { lastMove, movedDetail } from "./last-move.ts";

/** The events of the site's containers, which its host stores, and when the site moved to this host. */
export async function siteEventsOf(ctx: Ctx, { id: siteId, since }: ById & EventsQuery): Promise<SiteEvents> {
  const id = idIn("site", siteId);
  const {
    owned: site,
    move: [move],
  } = await ownedWith(ctx, siteById(ctx, id), {
    move: lastMove(ctx, id),
  });
  const answer = await askHostOf<"events">(ctx, site, { kind: "events", siteId: id });
  const moved = move?.at ? [{ at: move.at.toISOString(), kind: "moved" as const, detail: movedDetail }] : [];
  return { data: eventsSince([...moved, ...(answer?.events ?? [])], since) };
}

export const eventsSince = (events: SiteEvent[], since: string | undefined): SiteEvent[] =>
  since === undefined ? events : events.filter(({ at }) => Date.parse(at) >= Date.parse(since));
