import type { SiteEvents } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../context.ts";
import { askHost } from "./ask-host.ts";

/** What happened to the site's containers, which its host keeps. */
export async function siteEventsOf(ctx: Ctx, siteId: string): Promise<SiteEvents> {
  const answer = await askHost<"events">(ctx, siteId, (id) => ({ kind: "events", siteId: id }));
  return { data: answer?.events ?? [] };
}
