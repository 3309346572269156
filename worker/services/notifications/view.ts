import { sql } from "drizzle-orm";
import { getTableColumns } from "drizzle-orm";
import type { Channel, Delivery } from "../../../protocol/api/notifications.ts";
import type { Ctx } from "../../ctx.ts";
import { accounts, deliveries, notificationChannels } from "../../db/schema.ts";
import { isoTime } from "../../domain/iso-time.ts";

/** Channels with the account's email address. */
export const selectChannels = (ctx: Pick<Ctx, "db">) =>
  ctx.db
    .select({
      ...getTableColumns(notificationChannels),
      email:
        sql<string>`(SELECT email FROM ${accounts} WHERE ${accounts.id} = ${notificationChannels.accountId})`.as(
          "email",
        ),
    })
    .from(notificationChannels);
export type ChannelRow = Awaited<ReturnType<typeof selectChannels>>[number];

export const urlOf = (ctx: Pick<Ctx, "secrets">, { id, urlSealed }: Pick<ChannelRow, "id" | "urlSealed">) =>
  urlSealed === null ? "" : ctx.secrets.open(urlSealed, `notification_channels.url:${id}`);

const targetOf = (ctx: Ctx, row: ChannelRow): string => {
  if (row.type === "mail") return row.email;
  return row.type === "slack" ? new URL(urlOf(ctx, row)).hostname : urlOf(ctx, row);
};

export const channelView = (ctx: Ctx, row: ChannelRow): Channel => ({
  id: row.id,
  type: row.type,
  name: row.name,
  target: targetOf(ctx, row),
  kinds: row.kinds,
  enabled: row.enabled,
  disabledReason: row.disabledReason,
  createdAt: isoTime(row.createdAt),
  updatedAt: isoTime(row.updatedAt),
});

export const deliveryView = (row: typeof deliveries.$inferSelect): Delivery => ({
  id: row.id,
  channelId: row.channelId,
  kind: row.kind,
  resourceId: row.resourceId,
  subject: row.subject,
  text: row.text,
  status: row.status,
  attempts: row.attempts,
  httpStatus: row.httpStatus,
  error: row.error,
  nextAttemptAt: row.status === "pending" ? isoTime(row.tryAt) : null,
  createdAt: isoTime(row.createdAt),
  finishedAt: isoTime(row.finishedAt),
});
