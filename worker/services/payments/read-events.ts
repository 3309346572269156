import { eq } from "drizzle-orm";
import type { Ctx } from "../../context.ts";
import { processorReadings } from "../../db/schema.ts";

/** What was read so lately counts as all: a record that was put back to an older moment has not read what came since. */
const lateMs = 10 * 60_000;

/** Whether all that was paid until about then is in the record. The test processor keeps its own record there. */
export async function arePaymentsRead(ctx: Ctx, atMs: number): Promise<boolean> {
  if (ctx.payments.name === "test") return true;
  const [reading] = await ctx.db
    .select()
    .from(processorReadings)
    .where(eq(processorReadings.processor, ctx.payments.name));
  return reading !== undefined && reading.readAt.getTime() > atMs - lateMs;
}
