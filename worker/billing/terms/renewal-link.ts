import { sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { payUrl } from "../../domain/pay-url.ts";
import { renewalOf } from "./resource.ts";

/** The payment address of the resource's renewal; null: there is none to pay. */
export async function renewalLink(ctx: Ctx, resourceId: string): Promise<string | null> {
  const [open] = await ctx.db.all<{ token: string }>(sql`SELECT token FROM ${renewalOf(resourceId)}`);
  return open ? payUrl(ctx.config.SITE_URL, open.token) : null;
}
