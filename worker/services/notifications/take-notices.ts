import { and, asc, eq, isNull, lt, sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { canMail } from "../../adapters/mail.ts";
import { deliveries, notices, notificationChannels } from "../../db/schema.ts";
import { keepDeliveriesDays, maxPerHour } from "../../domain/delivery-times.ts";
import { mailText } from "../../domain/notification-texts.ts";
import { addDays } from "../../domain/pricing.ts";
import { eachAlone } from "../../each-alone.ts";
import { queueMail } from "../../mails/queue.ts";
import { compose } from "./compose.ts";

const atOnce = 100;
/** These are mailed to every account anyway. */
const mailedAnyway = new Set(["backup_failed", "invoice_due"]);

/** Run by cron: writes a delivery for each channel that wants to know. Repeatable at any point. */
export async function takeNotices(ctx: Ctx): Promise<void> {
  const old = addDays(ctx.now(), -keepDeliveriesDays);
  await ctx.db.batch([
    ctx.db.delete(notices).where(lt(notices.createdAt, old)),
    ctx.db.delete(deliveries).where(lt(deliveries.createdAt, old)),
  ]);
  const waiting = await ctx.db
    .select()
    .from(notices)
    .where(isNull(notices.takenAt))
    .orderBy(asc(notices.seq))
    .limit(atOnce);
  await eachAlone(
    "take notices",
    waiting.map((notice) => ({ id: notice.occasion, notice })),
    ({ notice }) => take(ctx, notice),
  );
}

async function take(ctx: Ctx, notice: typeof notices.$inferSelect): Promise<void> {
  const { accountId, kind, occasion, seq } = notice;
  const [notification, channels] = await Promise.all([
    compose(ctx, notice),
    ctx.db
      .select()
      .from(notificationChannels)
      .where(and(eq(notificationChannels.accountId, accountId), eq(notificationChannels.enabled, true))),
  ]);
  const now = ctx.now();
  const taken = ctx.db.update(notices).set({ takenAt: now }).where(eq(notices.seq, seq));
  const wanting = channels.filter(
    (one) =>
      one.kinds.includes(kind) && (one.type !== "mail" || (canMail(ctx.config) && !mailedAnyway.has(kind))),
  );
  if (!notification) return void (await taken);
  const { subject, text, link, resourceId } = notification;
  const written = wanting.flatMap((channel) => {
    const id = ctx.newId("delivery");
    const isMail = channel.type === "mail";
    return [
      ctx.statement(sql`
        INSERT INTO deliveries (id, account_id, channel_id, kind, occasion, resource_id, subject, text, link, status, try_at, created_at)
        SELECT ${id}, ${accountId}, ${channel.id}, ${kind}, ${occasion}, ${resourceId}, ${subject}, ${text}, ${link}, 'pending',
          ${isMail ? null : now.getTime()}, ${now.getTime()}
        WHERE EXISTS (SELECT 1 FROM notification_channels WHERE id = ${channel.id})
          AND ${maxPerHour} > (SELECT count(*) FROM deliveries
            WHERE account_id = ${accountId} AND created_at > ${now.getTime() - 3_600_000})
        ON CONFLICT DO NOTHING`),
      ...(isMail
        ? [
            queueMail(
              ctx,
              {
                id: mailIdOf(id),
                accountId,
                subject,
                text: mailText(notification, new URL("/account/notifications", ctx.config.SITE_URL).href),
              },
              sql`EXISTS (SELECT 1 FROM deliveries WHERE id = ${id})`,
            ),
          ]
        : []),
    ];
  });
  await ctx.db.batch([taken, ...written]);
}

/** The id in the outbox. */
export const mailIdOf = (deliveryId: string): string => `notification:${deliveryId}`;
