import { eq } from "drizzle-orm";
import type { Ctx } from "../../context.ts";
import { sites } from "../../db/schema.ts";
import { deriveKey, sha256Hex, webhookSegment } from "../../domain/tokens.ts";
import { siteOwnedBy } from "../sites/owned.ts";

const segmentOf = (ctx: Ctx, siteId: string, generation: number) =>
  webhookSegment(deriveKey(ctx.config.SECRET_KEY, "deploy-webhook"), siteId, generation);

const addressOf = (ctx: Ctx, segment: string) => ({
  url: `${ctx.config.WEBHOOK_HOST}/webhooks/deploy/${segment}`,
});

/** The site's deploy webhook: a secret. */
export async function getWebhookAddress(ctx: Ctx, siteId: string): Promise<{ url: string }> {
  const site = await siteOwnedBy(ctx, siteId);
  return addressOf(ctx, segmentOf(ctx, site.id, site.webhookGeneration));
}

/** Another address; the old one stops at once. */
export async function rotateWebhookAddress(ctx: Ctx, siteId: string): Promise<{ url: string }> {
  const site = await siteOwnedBy(ctx, siteId);
  const segment = segmentOf(ctx, site.id, site.webhookGeneration + 1);
  await ctx.db
    .update(sites)
    .set({ webhookHash: sha256Hex(segment), webhookGeneration: site.webhookGeneration + 1 })
    .where(eq(sites.id, site.id));
  return addressOf(ctx, segment);
}
