import { and, eq, lt } from "drizzle-orm";
import { accountOf, type Ctx } from "../../context.ts";
import { idempotentRequests } from "../../db/schema.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { addDays } from "../../domain/pricing.ts";
import { sha256Hex } from "../../domain/tokens.ts";

export type IdempotentRequest = { key: string; method: string; path: string; body: string };
export type FirstAnswer = { status: number; body: string };
/** Either the answer given before, or the right to give the first one. */
export type Claim =
  | { replay: FirstAnswer }
  | { keep(answer: FirstAnswer): Promise<void>; release(): Promise<void> };

/** Longer runs no request: it died, and nobody knows whether it had acted. */
const abandonedAfterMs = 5 * 60_000;

/** One of several equal requests gets to run. @throws AppError idempotency_mismatch, or conflict while the first runs */
export async function claimRequest(ctx: Ctx, request: IdempotentRequest): Promise<Claim> {
  const id = sha256Hex(JSON.stringify([accountOf(ctx), request.method, request.path, request.key]));
  const bodyHash = sha256Hex(request.body);
  const now = ctx.now();
  const row = eq(idempotentRequests.id, id);
  const expired = lt(idempotentRequests.createdAt, addDays(now, -1));
  const [, claimed, [known]] = await ctx.db.batch([
    ctx.db.delete(idempotentRequests).where(and(row, expired)),
    ctx.db
      .insert(idempotentRequests)
      .values({ id, bodyHash, createdAt: now })
      .onConflictDoNothing()
      .returning({ id: idempotentRequests.id }),
    ctx.db.select().from(idempotentRequests).where(row),
  ]);
  const context = `idempotent_requests:${id}` as const;
  if (claimed.length > 0)
    return {
      async keep({ status, body }) {
        await ctx.db
          .update(idempotentRequests)
          .set({ status, responseSealed: ctx.secrets.seal(body, context) })
          .where(row);
      },
      async release() {
        await ctx.db.delete(idempotentRequests).where(row);
      },
    };
  if (known && known.bodyHash !== bodyHash) throw new AppError("idempotency_mismatch");
  if (!known || known.status === null || known.responseSealed === null)
    throw conflict(
      known && now.getTime() - known.createdAt.getTime() > abandonedAfterMs
        ? "The first request with this Idempotency-Key was cut short: look whether it acted, then use another key."
        : "The first request with this Idempotency-Key is still running: try again in a moment.",
    );
  return { replay: { status: known.status, body: ctx.secrets.open(known.responseSealed, context) } };
}
