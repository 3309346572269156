import { eq } from "drizzle-orm";
import type { ById } from "../../../protocol/api/common.ts";
import type { Channel, ChannelPatch, ChannelRemoved } from "../../../protocol/api/notifications.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { deliveries, notificationChannels } from "../../db/schema.ts";
import { invalid } from "../../domain/app-error.ts";
import { requireFound } from "../owned.ts";
import { publicUrl } from "./create-channel.ts";
import { channelOwnedBy } from "./owned.ts";
import { channelView, selectChannels } from "./view.ts";

/** Whoever changes the address or enables the channel again forgives its receiver. */
export async function changeChannel(
  ctx: Ctx,
  { id: channelId, url, ...patch }: ById & ChannelPatch,
): Promise<Channel> {
  const row = await channelOwnedBy(ctx, channelId);
  if (url !== undefined && row.type === "mail")
    throw invalid("url", "a mail channel has no address of its own");
  const { id } = row;
  const {
    changed: [changed],
  } = await batch(ctx, {
    write: ctx.db
      .update(notificationChannels)
      .set({
        ...patch,
        ...(url !== undefined && {
          urlSealed: ctx.secrets.seal(publicUrl(url), `notification_channels.url:${id}`),
        }),
        ...((url !== undefined || patch.enabled) && { disabledReason: null }),
        updatedAt: ctx.now(),
      })
      .where(eq(notificationChannels.id, id)),
    changed: selectChannels(ctx).where(eq(notificationChannels.id, id)),
  });
  return channelView(ctx, requireFound(changed));
}

/** Its deliveries go with it, and what waits is not sent. */
export async function removeChannel(ctx: Ctx, { id: channelId }: ById): Promise<ChannelRemoved> {
  const { id } = await channelOwnedBy(ctx, channelId);
  await ctx.db.batch([
    ctx.db.delete(deliveries).where(eq(deliveries.channelId, id)),
    ctx.db.delete(notificationChannels).where(eq(notificationChannels.id, id)),
  ]);
  return { id, deleted: true };
}
