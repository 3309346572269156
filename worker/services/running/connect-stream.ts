import type { StreamTarget } from "../../../protocol/agent/messages.ts";
import type { Id } from "../../../protocol/ids.ts";
import { readerOf, type Ctx } from "../../ctx.ts";
import { conflict } from "../../domain/app-error.ts";

/** The client's end of a stream. @throws AppError conflict if the host cannot open it now */
export async function connectStream(
  ctx: Ctx,
  hostId: Id<"host"> | null,
  target: StreamTarget,
): Promise<WebSocket> {
  if (hostId === null) throw conflict("It has not run yet, so there is nothing to connect to.");
  const connected = await ctx.questions.connect(hostId, target, readerOf(ctx));
  if ("kind" in connected) throw conflict(connected.error);
  return connected;
}
