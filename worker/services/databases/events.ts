import type { ById } from "../../../protocol/api/common.ts";
import { keepEvents } from "../../../protocol/agent/running.ts";
import type { EventsQuery, SiteEvents } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../ctx.ts";
import { endedRestores, restoreEvent } from "../backups/restores.ts";
import { idIn, ownedWith } from "../owned.ts";
import { askHostOf } from "../running/ask-host.ts";
import { eventsSince } from "../running/events.ts";
import { databaseById } from "./owned.ts";

/** The events of the database's container, which its host stores, and the results of restores. */
export async function databaseEventsOf(
  ctx: Ctx,
  { id: databaseId, since }: ById & EventsQuery,
): Promise<SiteEvents> {
  const id = idIn("database", databaseId);
  const { owned: database, restores } = await ownedWith(ctx, databaseById(ctx, id), {
    restores: endedRestores(ctx, id),
  });
  const answer = await askHostOf<"events">(ctx, database, { kind: "events", siteId: id });
  const events = [...(answer?.events ?? []), ...restores.map(restoreEvent)];
  const newest = events.toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at)).slice(-keepEvents);
  return { data: eventsSince(newest, since) };
}
