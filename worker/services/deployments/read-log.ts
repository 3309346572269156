import type { ById, Page, Resumed } from "../../../protocol/api/common.ts";
import type { LogLine, LogQuery } from "../../../protocol/api/deployments.ts";
import type { Id } from "../../../protocol/ids.ts";
import { readerOf, type Ctx } from "../../ctx.ts";
import { conflict } from "../../domain/app-error.ts";
import { isOver } from "./log-over.ts";
import { deploymentOwnedBy } from "./owned.ts";

export type LogAnswer = Page<LogLine> | ReadableStream<Uint8Array>;
export type LogAsked = ById & LogQuery & Resumed;
type Logged = { id: Id<"deployment" | "command">; finishedAt: Date | null };

/** The log of a deployment: one page, or server-sent events. */
export const getDeploymentLogs = async (ctx: Ctx, { id, ...asked }: LogAsked): Promise<LogAnswer> =>
  recordedLog(ctx, await deploymentOwnedBy(ctx, id), asked);

/**
 * A page of a stored log, or server-sent events that resume after `lastEventId`. @throws AppError conflict with too
 * many readers
 */
export async function recordedLog(
  ctx: Ctx,
  logged: Logged,
  { follow, limit, cursor, lastEventId }: LogQuery & Resumed,
): Promise<LogAnswer> {
  if (follow === "1") {
    const after = Number(lastEventId ?? cursor);
    return followRecordedLog(ctx, logged, Number.isSafeInteger(after) && after > 0 ? after : 0);
  }
  const lines = await ctx.logs.read(logged.id, cursor, limit);
  return { data: lines, nextCursor: lines.length === limit ? String(lines.at(-1)?.seq) : null };
}

/**
 * The lines after a line as server-sent events, to the end of the log. @throws AppError conflict with too many readers
 */
async function followRecordedLog(
  ctx: Ctx,
  { id, finishedAt }: Logged,
  after: number,
): Promise<ReadableStream<Uint8Array>> {
  const events = await ctx.logs.follow(id, after, readerOf(ctx), isOver(ctx, finishedAt));
  if (!events) throw conflict("Too many readers are following this log. Close one of them first.");
  return events;
}
