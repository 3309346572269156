import type { Operation } from "../../protocol/api/operations.ts";
import type { Ctx } from "../ctx.ts";
import { AppError } from "../domain/app-error.ts";

/**
 * Checks whether the actor may call this operation at all; the verbs check ownership. @throws AppError unauthorized,
 * forbidden
 */
export function requireAccess({ actor }: Ctx, { access, assistant }: Operation): void {
  if (access === "none") return;
  if (actor.type !== "key" && actor.type !== "session" && actor.type !== "assistant")
    throw new AppError("unauthorized");
  if (access === "session" && actor.type !== "session" && !(actor.type === "assistant" && assistant))
    throw new AppError("forbidden");
  if (access === "operator" && (actor.type === "assistant" || actor.role !== "operator"))
    throw new AppError("forbidden");
}
