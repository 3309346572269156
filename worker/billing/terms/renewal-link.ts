import { sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { payUrl } from "../../domain/pay-url.ts";
import { renewalOf } from "./resource.ts";

/** Where the resource's renewal is paid, and when it was issued; null: there is none to pay. */
export async function openRenewal(
  ctx: Ctx,
  resourceId: string,
): Promise<{ link: string; issuedAt: Date } | null> {
  const [open] = await ctx.db.all<{ token: string; issuedAt: number }>(
    sql`SELECT token, created_at AS issuedAt FROM ${renewalOf(resourceId)}`,
  );
  return open ? { link: payUrl(ctx.config.SITE_URL, open.token), issuedAt: new Date(open.issuedAt) } : null;
}

export const renewalLink = async (ctx: Ctx, resourceId: string): Promise<string | null> =>
  (await openRenewal(ctx, resourceId))?.link ?? null;
