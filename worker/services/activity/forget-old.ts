import { lt } from "drizzle-orm";
import { formatId } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { activity } from "../../db/schema.ts";
import { addDays } from "../../domain/pricing.ts";

const keptDays = 365;

/** Ids sort by time, so the oldest rows come first in the primary key. */
export async function forgetOldActivity(ctx: Ctx): Promise<void> {
  const first = formatId("activity", addDays(ctx.now(), -keptDays).getTime(), new Uint8Array(10));
  await ctx.db.delete(activity).where(lt(activity.id, first));
}
