import type { Operation } from "../../protocol/api/operations.ts";
import type { Ctx } from "../context.ts";
import { AppError } from "../domain/app-error.ts";

/** Whether the actor may ask for this at all; the verbs see to whose resource it is. @throws AppError unauthorized, forbidden */
export function requireAccess({ actor }: Ctx, { access }: Operation): void {
  if (access === "none") return;
  if (actor.type !== "key" && actor.type !== "session" && actor.type !== "assistant")
    throw new AppError("unauthorized");
  if (access === "session" && actor.type !== "session") throw new AppError("forbidden");
  if (access === "operator" && (actor.type === "assistant" || actor.role !== "operator"))
    throw new AppError("forbidden");
}
