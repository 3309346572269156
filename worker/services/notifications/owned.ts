import { eq } from "drizzle-orm";
import { isId } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { notificationChannels } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { requireOwned } from "../owned.ts";
import { selectChannels, type ChannelRow } from "./view.ts";

/** @throws AppError not_found, then forbidden */
export async function channelOwnedBy(ctx: Ctx, id: string): Promise<ChannelRow> {
  if (!isId("channel", id)) throw new AppError("not_found");
  const [row] = await selectChannels(ctx).where(eq(notificationChannels.id, id));
  return requireOwned(ctx, row);
}
