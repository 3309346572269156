import type { Ctx } from "../../ctx.ts";
import { recordedLog, type LogAnswer, type LogAsked } from "../deployments/read-log.ts";
import { commandOwnedBy } from "./owned.ts";

/** The output of a command: one page, or server-sent events. */
export const getCommandLogs = async (ctx: Ctx, { id, ...asked }: LogAsked): Promise<LogAnswer> =>
  recordedLog(ctx, await commandOwnedBy(ctx, id), asked);
