import type { ById } from "../../../protocol/api/common.ts";
import type { Delivery } from "../../../protocol/api/notifications.ts";
import { canMail, sendMail } from "../../adapters/mail.ts";
import type { Ctx } from "../../ctx.ts";
import { deliveries } from "../../db/schema.ts";
import { testNotification } from "../../domain/notification-texts.ts";
import { logError } from "../../log-error.ts";
import { mailIdOf } from "./take-notices.ts";
import { deliver, failed, type Outcome } from "./deliver.ts";
import { channelOwnedBy } from "./owned.ts";
import { deliveryView, type ChannelRow } from "./view.ts";

/** Sends a test through a channel now, once, also if it is disabled; the answer says how that went. */
export async function testChannel(ctx: Ctx, { id: channelId }: ById): Promise<Delivery> {
  const channel = await channelOwnedBy(ctx, channelId);
  const id = ctx.newId("delivery");
  const createdAt = ctx.now();
  const { isSent, httpStatus, error } =
    channel.type === "mail"
      ? await mailed(ctx, channel, id)
      : await deliver(ctx, channel, {
          id,
          accountId: channel.accountId,
          createdAt,
          notification: testNotification,
        });
  const { subject, text } = testNotification;
  const row: typeof deliveries.$inferSelect = {
    id,
    accountId: channel.accountId,
    channelId: channel.id,
    kind: "test",
    occasion: `test:${id}`,
    resourceId: null,
    subject,
    text,
    link: null,
    status: isSent ? "sent" : "failed",
    attempts: 1,
    tryAt: null,
    httpStatus,
    error,
    createdAt,
    finishedAt: ctx.now(),
  };
  await ctx.db.insert(deliveries).values(row);
  return deliveryView(row);
}

async function mailed(ctx: Ctx, { email }: ChannelRow, id: string): Promise<Outcome> {
  if (!canMail(ctx.config)) return failed("This installation cannot send mail.");
  const { subject, text } = testNotification;
  try {
    await sendMail(ctx.config, { to: email, subject, text }, mailIdOf(id));
    return { isSent: true, httpStatus: null, error: null };
  } catch (error) {
    logError({ notification: id }, error);
    return failed("The mail service did not accept it.");
  }
}
