import type { Ctx } from "../ctx.ts";
import { AppError } from "../domain/app-error.ts";

export function requireOperator(ctx: Ctx): void {
  if ((ctx.actor.type === "key" || ctx.actor.type === "session") && ctx.actor.role === "operator") return;
  throw new AppError("forbidden");
}
