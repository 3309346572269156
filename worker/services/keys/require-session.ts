import type { Ctx } from "../../ctx.ts";
import { AppError } from "../../domain/app-error.ts";

/** Keys are managed by a signed-in person only: a key cannot make keys. */
export function requireSession(ctx: Ctx): void {
  if (ctx.actor.type !== "session") throw new AppError("forbidden");
}
