import type { Ctx } from "../../ctx.ts";
import { AppError } from "../../domain/app-error.ts";
import { CutOff } from "./log-viewer.tsx";
import type { Streamed } from "./screen.ts";

/** A log to be written into the page, or why it cannot be read now. `last` is said after its last line. */
export async function streamedLog(
  ctx: Ctx,
  asked: Promise<unknown>,
  last: Streamed["last"] = () => Promise.resolve(<CutOff />),
): Promise<Streamed | string> {
  try {
    const events = await asked;
    if (!(events instanceof ReadableStream)) return "The log cannot be followed now.";
    return { mark: ctx.newMark(), events, last };
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== "conflict") throw error;
    const { reason } = error.extra;
    return typeof reason === "string" ? reason : error.message;
  }
}
