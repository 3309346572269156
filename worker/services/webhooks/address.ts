import { eq } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { sites } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { earlierWebhookHash, webhookHash, webhookSegment } from "../../domain/tokens.ts";
import { tokenKeys } from "../../config.ts";
import { siteOwnedBy } from "../sites/owned.ts";

export const newSegment = (ctx: Ctx, siteId: string, generation: number): Promise<string> =>
  webhookSegment(tokenKeys(ctx.config, "deploy-webhook")[0], siteId, generation);

const addressOf = (ctx: Ctx, segment: string) => ({
  url: `${ctx.config.WEBHOOK_HOST}/webhooks/deploy/${segment}`,
});

/** The site's deploy webhook: a secret. Made under an older key, it is shown as long as the installation knows that key. */
export async function getWebhookAddress(ctx: Ctx, siteId: string): Promise<{ url: string }> {
  const site = await siteOwnedBy(ctx, siteId);
  const segments = await Promise.all(
    tokenKeys(ctx.config, "deploy-webhook").map((key) =>
      webhookSegment(key, site.id, site.webhookGeneration),
    ),
  );
  const segment = segments.find((one) =>
    [webhookHash(one), earlierWebhookHash(one)].includes(site.webhookHash),
  );
  if (segment === undefined)
    throw conflict(
      "This address was made under a key that the installation no longer has: it works on, but cannot be shown. Rotate it to get another.",
    );
  return addressOf(ctx, segment);
}

/** Another address; the old one stops at once. */
export async function rotateWebhookAddress(ctx: Ctx, siteId: string): Promise<{ url: string }> {
  const site = await siteOwnedBy(ctx, siteId);
  const segment = await newSegment(ctx, site.id, site.webhookGeneration + 1);
  await ctx.db
    .update(sites)
    .set({ webhookHash: webhookHash(segment), webhookGeneration: site.webhookGeneration + 1 })
    .where(eq(sites.id, site.id));
  return addressOf(ctx, segment);
}
