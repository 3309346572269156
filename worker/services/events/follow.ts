import type { EventQuery } from "../../../protocol/api/events.ts";
import type { Resumed } from "../../../protocol/api/common.ts";
import { readerOf, type Ctx } from "../../ctx.ts";
import { conflict } from "../../domain/app-error.ts";

/** The changes of the account as server-sent events, until the caller's key or session ends. @throws AppError conflict with too many readers */
export async function followEvents(
  ctx: Ctx,
  { after, lastEventId }: EventQuery & Resumed,
): Promise<ReadableStream<Uint8Array>> {
  const reader = readerOf(ctx);
  const from = lastEventId === undefined || lastEventId === "" ? after : Number(lastEventId);
  const events = await ctx.events.follow(
    reader.accountId,
    reader,
    from === undefined || !Number.isSafeInteger(from) ? null : from,
  );
  if (!events)
    throw conflict("Too many readers are following this account's events. Close one of them first.");
  return events;
}
