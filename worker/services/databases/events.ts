import type { SiteEvents } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../context.ts";
import { askHostOf } from "../running/ask-host.ts";
import { databaseOwnedBy } from "./owned.ts";

/** What happened to the database's container, which its host keeps. */
export async function databaseEventsOf(ctx: Ctx, databaseId: string): Promise<SiteEvents> {
  const database = await databaseOwnedBy(ctx, databaseId);
  const answer = await askHostOf<"events">(ctx, database, { kind: "events", siteId: database.id });
  return { data: answer?.events ?? [] };
}
