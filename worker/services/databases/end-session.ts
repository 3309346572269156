import type { ById } from "../../../protocol/api/common.ts";
import type { SessionEnded } from "../../../protocol/api/insight.ts";
import type { Ctx } from "../../ctx.ts";
import { AppError } from "../../domain/app-error.ts";
import { askServer } from "./ask-host.ts";
import { databaseOwnedBy } from "./owned.ts";

/** Ends one session of the database's server, with what it runs and the locks that it holds. */
export async function endSession(
  ctx: Ctx,
  { id: databaseId, sessionId }: ById & { sessionId: string },
): Promise<SessionEnded> {
  const database = await databaseOwnedBy(ctx, databaseId);
  if (!/^\d{1,15}$/.test(sessionId)) throw new AppError("not_found");
  const { ended } = await askServer<"endSession">(ctx, database, (server) => ({
    kind: "endSession",
    session: sessionId,
    ...server,
  }));
  if (!ended)
    throw new AppError("not_found", { reason: `The server has no session ${sessionId}: it may have ended.` });
  return { id: sessionId, ended: true };
}
