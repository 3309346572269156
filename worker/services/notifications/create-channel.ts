import { sql } from "drizzle-orm";
import type { ChannelCreate, ChannelCreated } from "../../../protocol/api/notifications.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { notificationChannels } from "../../db/schema.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { maxChannels } from "../../domain/delivery-times.ts";
import { whyNotSent } from "../../domain/public-address.ts";
import { secretBytes, webhookSecret } from "../../domain/webhook-signature.ts";
import { eq } from "drizzle-orm";
import { channelView, selectChannels } from "./view.ts";

const names = { mail: "Email", webhook: "Webhook", slack: "Slack" };

/** @throws AppError invalid_request for an address that is not public, conflict with too many channels */
export async function createChannel(ctx: Ctx, asked: ChannelCreate): Promise<ChannelCreated> {
  const url = asked.type === "mail" ? null : publicUrl(asked.url);
  const id = ctx.newId("channel");
  const now = ctx.now().getTime();
  const secret = asked.type === "webhook" ? webhookSecret(ctx.random(secretBytes)) : null;
  const accountId = accountOf(ctx);
  const {
    made: [made],
  } = await batch(ctx, {
    channel: ctx.statement(sql`
      INSERT INTO notification_channels (id, account_id, type, name, url_sealed, secret_sealed, kinds, created_at, updated_at)
      SELECT ${id}, ${accountId}, ${asked.type}, ${asked.name ?? names[asked.type]},
        ${url === null ? null : ctx.secrets.seal(url, `notification_channels.url:${id}`)},
        ${secret === null ? null : ctx.secrets.seal(secret, `notification_channels.secret:${id}`)},
        ${JSON.stringify(asked.kinds)}, ${now}, ${now}
      WHERE ${maxChannels} > (SELECT count(*) FROM notification_channels WHERE account_id = ${accountId})`),
    made: selectChannels(ctx).where(eq(notificationChannels.id, id)),
  });
  if (!made) throw conflict(`An account can have at most ${maxChannels} channels. Delete one first.`);
  return { ...channelView(ctx, made), secret };
}

/** As it is requested later. @throws AppError invalid_request */
export function publicUrl(url: string): string {
  const reason = whyNotSent(url);
  if (reason !== null) throw invalid("url", reason);
  return new URL(url).href;
}
