import { and, desc, eq } from "drizzle-orm";
import type { ListQuery, Page } from "../../../protocol/api/common.ts";
import type { Channel, Delivery, DeliveryListQuery } from "../../../protocol/api/notifications.ts";
import type { Id } from "../../../protocol/ids.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { deliveries, notificationChannels } from "../../db/schema.ts";
import { before, page } from "../page.ts";
import { channelView, deliveryView, selectChannels } from "./view.ts";

/** The account's channels, newest first. */
export async function listChannels(ctx: Ctx, query: ListQuery): Promise<Page<Channel>> {
  const rows = await selectChannels(ctx)
    .where(and(eq(notificationChannels.accountId, accountOf(ctx)), before(notificationChannels.id, query)))
    .orderBy(desc(notificationChannels.id))
    .limit(query.limit + 1);
  return page(rows, query, (row) => channelView(ctx, row));
}

/** What was sent, or is to be sent, and how that went; newest first. */
export async function listDeliveries(ctx: Ctx, query: DeliveryListQuery): Promise<Page<Delivery>> {
  const rows = await ctx.db
    .select()
    .from(deliveries)
    .where(
      and(
        eq(deliveries.accountId, accountOf(ctx)),
        query.channelId === undefined
          ? undefined
          : eq(deliveries.channelId, query.channelId as Id<"channel">),
        query.status && eq(deliveries.status, query.status),
        before(deliveries.id, query),
      ),
    )
    .orderBy(desc(deliveries.id))
    .limit(query.limit + 1);
  return page(rows, query, deliveryView);
}
