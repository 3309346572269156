import type { Operation } from "../../protocol/api/operations.ts";
import type { Ctx, Suspended } from "../ctx.ts";
import { AppError } from "../domain/app-error.ts";

type Asked = Pick<Operation, "access" | "assistant" | "method" | "ownersOnly">;

/**
 * Checks whether the actor may call this operation at all; the verbs check ownership. @throws AppError unauthorized,
 * forbidden
 */
export function requireAccess({ actor }: Ctx, operation: Asked): void {
  const { access, assistant, method } = operation;
  if (access === "none") return;
  if (actor.type === "viewer") return requireViewable(operation);
  if (actor.type !== "key" && actor.type !== "session" && actor.type !== "assistant")
    throw new AppError("unauthorized");
  if (access === "session" && actor.type !== "session" && !(actor.type === "assistant" && assistant))
    throw new AppError("forbidden", { reason: "This is done in the dashboard: API keys are refused." });
  if (access === "operator" && (actor.type === "assistant" || actor.role !== "operator"))
    throw new AppError("forbidden", { reason: "Only operators of this service may do this." });
  // Its owner still sees what there is, and pays.
  if (actor.type !== "assistant" && method !== "get") refuseSuspended(actor);
}

export const onlyViewed = (): AppError =>
  new AppError("forbidden", { reason: "You see this account as its owner does, and can change nothing." });

/** What an operator sees of an account that is not theirs. @throws AppError forbidden, with the reason */
function requireViewable({ access, method, ownersOnly }: Asked): void {
  if (access === "operator") throw new AppError("forbidden");
  if (method !== "get") throw onlyViewed();
  if (ownersOnly) throw new AppError("forbidden", { reason: "This is shown to the account's owner only." });
}

/** @throws AppError forbidden, with the reason */
export function refuseSuspended({ suspendedFor }: Suspended): void {
  if (suspendedFor === null || suspendedFor === undefined) return;
  throw new AppError("forbidden", {
    reason: `This account is suspended: ${suspendedFor} Ask the operator of this service.`,
  });
}
