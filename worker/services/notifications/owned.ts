import { eq } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { notificationChannels } from "../../db/schema.ts";
import { idIn, requireOwned } from "../owned.ts";
import { selectChannels, type ChannelRow } from "./view.ts";

/** @throws AppError not_found, then forbidden */
export async function channelOwnedBy(ctx: Ctx, id: string): Promise<ChannelRow> {
  const [row] = await selectChannels(ctx).where(eq(notificationChannels.id, idIn("channel", id)));
  return requireOwned(ctx, row);
}
