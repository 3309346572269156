import { and, eq, ne } from "drizzle-orm";
import type { ById } from "../../../protocol/api/common.ts";
import type { SessionRevoked, SessionsRevoked } from "../../../protocol/api/self-service.ts";
import type { Id } from "../../../protocol/ids.ts";
import { accountOf, credentialOf, type Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { sessions } from "../../db/schema.ts";
import { idIn, requireOwned } from "../owned.ts";

/** Ends a session: its next request is refused. */
export async function revokeSession(ctx: Ctx, { id: sessionId }: ById): Promise<SessionRevoked> {
  const id = idIn("session", sessionId);
  const mine = and(eq(sessions.id, id), eq(sessions.accountId, accountOf(ctx)));
  const { found } = await batch(ctx, {
    found: ctx.db.select().from(sessions).where(eq(sessions.id, id)),
    ended: ctx.db.delete(sessions).where(mine),
  });
  requireOwned(ctx, found[0]);
  return { id, revoked: true };
}

/** Ends all sessions of the account except the one that asks. */
export async function revokeOtherSessions(ctx: Ctx): Promise<SessionsRevoked> {
  const { ended } = await batch(ctx, {
    ended: ctx.db
      .delete(sessions)
      .where(and(eq(sessions.accountId, accountOf(ctx)), ne(sessions.id, credentialOf(ctx) as Id<"session">)))
      .returning({ id: sessions.id }),
  });
  return { revoked: ended.length };
}
