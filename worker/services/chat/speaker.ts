import { credentialOf, type Ctx, type Sent } from "../../ctx.ts";
import { AppError } from "../../domain/app-error.ts";

/** On whose behalf the assistant acts: a person, by a key or a session. @throws AppError unauthorized */
export function speakerOf(ctx: Ctx): Sent["speaker"] {
  const { actor } = ctx;
  if (actor.type !== "key" && actor.type !== "session") throw new AppError("unauthorized");
  const { accountId, role, plan } = actor;
  return { accountId, role, plan, credential: credentialOf(ctx) };
}
