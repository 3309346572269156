import { eq } from "drizzle-orm";
import type { Ctx } from "../../context.ts";
import { sites } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { deriveKey, sha256Hex, webhookSegment } from "../../domain/tokens.ts";
import { tokenKeys } from "../../env.ts";
import { siteOwnedBy } from "../sites/owned.ts";

const segmentOf = (secretKey: string, siteId: string, generation: number) =>
  webhookSegment(deriveKey(secretKey, "deploy-webhook"), siteId, generation);

export const newSegment = (ctx: Ctx, siteId: string, generation: number): string =>
  segmentOf(tokenKeys(ctx.config)[0], siteId, generation);

const addressOf = (ctx: Ctx, segment: string) => ({
  url: `${ctx.config.WEBHOOK_HOST}/webhooks/deploy/${segment}`,
});

/** The site's deploy webhook: a secret. Made under an older key, it is shown as long as the installation knows that key. */
export async function getWebhookAddress(ctx: Ctx, siteId: string): Promise<{ url: string }> {
  const site = await siteOwnedBy(ctx, siteId);
  const segment = tokenKeys(ctx.config)
    .map((secretKey) => segmentOf(secretKey, site.id, site.webhookGeneration))
    .find((one) => sha256Hex(one) === site.webhookHash);
  if (segment === undefined)
    throw conflict(
      "This address was made under a key that the installation no longer has: it works on, but cannot be shown. Rotate it to get another.",
    );
  return addressOf(ctx, segment);
}

/** Another address; the old one stops at once. */
export async function rotateWebhookAddress(ctx: Ctx, siteId: string): Promise<{ url: string }> {
  const site = await siteOwnedBy(ctx, siteId);
  const segment = newSegment(ctx, site.id, site.webhookGeneration + 1);
  await ctx.db
    .update(sites)
    .set({ webhookHash: sha256Hex(segment), webhookGeneration: site.webhookGeneration + 1 })
    .where(eq(sites.id, site.id));
  return addressOf(ctx, segment);
}
