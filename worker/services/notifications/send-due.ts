import { and, eq, sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { deliveries, notificationChannels } from "../../db/schema.ts";
import { nextAttempt } from "../../domain/delivery-times.ts";
import { eachAlone } from "../../each-alone.ts";
import { deliver, failed, type Outcome } from "./deliver.ts";

const atOnce = 30;
/** Of one account, whose receivers may all be slow. Each account has its first before another has its second. */
const perAccount = 5;
const gone = 410;

/** Run by cron: posts what is due, and takes over what the outbox says of mails. */
export async function sendDueNotifications(ctx: Ctx): Promise<void> {
  const now = ctx.now();
  await takeOutcomesOfMails(ctx, now);
  const due = await ctx.db.all<{ id: Id<"delivery"> }>(sql`
    SELECT id FROM (
      SELECT id, try_at, row_number() OVER (PARTITION BY account_id ORDER BY try_at) AS turn
      FROM deliveries WHERE status = 'pending' AND try_at <= ${now.getTime()})
    WHERE turn <= ${perAccount} ORDER BY turn, try_at LIMIT ${atOnce}`);
  await Promise.all(due.map((one) => eachAlone("send notifications", [one], ({ id }) => send(ctx, id))));
}

/** Mails are sent by the outbox, which gives up after three days. */
async function takeOutcomesOfMails(ctx: Ctx, now: Date): Promise<void> {
  await ctx.db.batch([
    ctx.statement(sql`
      UPDATE deliveries SET status = 'sent', finished_at = m.sent_at, attempts = 1
      FROM mails m WHERE m.id = 'notification:' || deliveries.id AND m.sent_at IS NOT NULL
        AND deliveries.status = 'pending' AND deliveries.try_at IS NULL`),
    ctx.statement(sql`
      UPDATE deliveries SET status = 'failed', finished_at = ${now.getTime()}, error = 'The mail service did not take it.'
      WHERE status = 'pending' AND try_at IS NULL AND created_at < ${now.getTime() - 4 * 86_400_000}`),
  ]);
}

/** Only the caller that moves the next attempt sends it; an interrupted attempt counts as failed. */
async function send(ctx: Ctx, id: Id<"delivery">): Promise<void> {
  const [found] = await ctx.db
    .select({ delivery: deliveries, channel: notificationChannels })
    .from(deliveries)
    .innerJoin(notificationChannels, eq(notificationChannels.id, deliveries.channelId))
    .where(eq(deliveries.id, id));
  if (!found || found.delivery.tryAt === null) return;
  const { delivery, channel } = found;
  const attempts = delivery.attempts + 1;
  const tryAt = nextAttempt(ctx.now(), attempts);
  const [taken] = await ctx.db
    .update(deliveries)
    .set({ attempts, tryAt, ...(tryAt === null && { status: "failed", finishedAt: ctx.now() }) })
    .where(
      and(
        eq(deliveries.id, id),
        eq(deliveries.attempts, delivery.attempts),
        eq(deliveries.status, "pending"),
      ),
    )
    .returning({ id: deliveries.id });
  if (!taken) return;
  const outcome = channel.enabled
    ? await deliver(ctx, channel, {
        id,
        accountId: delivery.accountId,
        createdAt: delivery.createdAt,
        notification: delivery,
      })
    : failed("The channel is disabled.", delivery.httpStatus);
  await record(ctx, delivery, outcome, channel.enabled ? tryAt : null);
}

/** A receiver that is gone is not asked again (https://www.standardwebhooks.com). */
async function record(
  ctx: Ctx,
  { id, channelId }: typeof deliveries.$inferSelect,
  { isSent, httpStatus, error }: Outcome,
  tryAt: Date | null,
): Promise<void> {
  const isOver = isSent || tryAt === null || httpStatus === gone;
  await ctx.db.batch([
    ctx.db
      .update(deliveries)
      .set({
        status: isSent ? "sent" : isOver ? "failed" : "pending",
        httpStatus,
        error,
        ...(isOver && { tryAt: null, finishedAt: ctx.now() }),
      })
      .where(eq(deliveries.id, id)),
    ctx.db
      .update(notificationChannels)
      .set({ enabled: false, disabledReason: "Its receiver answered that it is gone (410)." })
      .where(
        and(
          eq(notificationChannels.id, channelId),
          eq(notificationChannels.enabled, true),
          sql`${httpStatus === gone}`,
        ),
      ),
  ]);
}
