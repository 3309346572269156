import type { Ctx } from "../../context.ts";

export const payUrl = (ctx: Ctx, token: string): string => `${ctx.config.SITE_URL}/invoice/${token}`;
