import type { Ctx } from "../../ctx.ts";
import { slackBody, webhookBody, type Notification } from "../../domain/notification-texts.ts";
import { arePublic, whyNotSent } from "../../domain/public-address.ts";
import { webhookHeaders } from "../../domain/webhook-signature.ts";
import { urlOf, type ChannelRow } from "./view.ts";

export type Outcome = { isSent: boolean; httpStatus: number | null; error: string | null };

type Sent = { id: string; accountId: string; createdAt: Date; notification: Notification };

export const failed = (error: string, httpStatus: number | null = null): Outcome => ({
  isSent: false,
  httpStatus,
  error,
});

/** Posts a notification to a webhook's or chat's address once. Never throws: the outcome says what happened. */
export async function deliver(
  ctx: Ctx,
  channel: Pick<ChannelRow, "id" | "type" | "urlSealed" | "secretSealed">,
  { id, accountId, createdAt, notification }: Sent,
): Promise<Outcome> {
  let url: string;
  let secret: string | null;
  try {
    url = urlOf(ctx, channel);
    secret =
      channel.secretSealed &&
      ctx.secrets.open(channel.secretSealed, `notification_channels.secret:${channel.id}`);
  } catch {
    return failed("The channel's address cannot be decrypted: set it again.");
  }
  const reason = whyNotSent(url) ?? (await whyNotResolved(ctx, new URL(url).hostname));
  if (reason !== null) return failed(`Not sent: ${reason}.`);
  const body =
    channel.type === "slack" ? slackBody(notification) : webhookBody(notification, { accountId, createdAt });
  const headers = secret === null ? {} : webhookHeaders(secret, { id, at: ctx.now(), body });
  try {
    const httpStatus = await ctx.postOnce(url, headers, body);
    return httpStatus >= 200 && httpStatus < 300
      ? { isSent: true, httpStatus, error: null }
      : failed(`The receiver answered ${httpStatus}.`, httpStatus);
  } catch (error) {
    const isLate = (error as Error).name === "TimeoutError";
    return failed(isLate ? "The receiver did not answer within 10 s." : "The receiver cannot be reached.");
  }
}

/**
 * Cloudflare's network reaches no private address, but a Worker elsewhere may. A name whose addresses change between this
 * look-up and the request's own is not noticed.
 */
async function whyNotResolved(ctx: Ctx, hostname: string): Promise<string | null> {
  const found = await ctx.dns.addresses(hostname).catch(() => null);
  if (!found) return "no name server answered";
  if (found.v4.length + found.v6.length === 0) return `${hostname} has no address`;
  return arePublic(found) ? null : `${hostname} leads to a private address`;
}
