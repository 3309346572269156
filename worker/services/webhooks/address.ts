import type { ById } from "../../../protocol/api/common.ts";
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

/**
 * The site's deploy webhook URL, a secret. One issued under an older key can be shown as long as that key is
 * configured.
 */
export async function getWebhookAddress(ctx: Ctx, { id: siteId }: ById): Promise<{ url: string }> {
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
      "This URL was issued with a key that the installation no longer has. It still works, but cannot be shown. Rotate it to get a new one.",
    );
  return addressOf(ctx, segment);
}

/** Replaces the URL; the old one stops working immediately. */
export async function rotateWebhookAddress(ctx: Ctx, { id: siteId }: ById): Promise<{ url: string }> {
  const site = await siteOwnedBy(ctx, siteId);
  const segment = await newSegment(ctx, site.id, site.webhookGeneration + 1);
  await ctx.db.batch([
    ctx.db
      .update(sites)
      .set({ webhookHash: webhookHash(segment), webhookGeneration: site.webhookGeneration + 1 })
      .where(eq(sites.id, site.id)),
  ]);
  return addressOf(ctx, segment);
}
