import { and, eq, isNotNull, lt, sql } from "drizzle-orm";
import { accountOf, type Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { idempotentRequests } from "../../db/schema.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { addDays } from "../../domain/pricing.ts";
import { sha256Hex } from "../../domain/tokens.ts";

/** `query` is empty or begins with `?`. */
type IdempotentRequest = { key: string; method: string; path: string; query: string; body: string };
type FirstAnswer = { status: number; location: string | null; body: string };
/** Without a body: only the fact that it was given. */
type Kept = Omit<FirstAnswer, "body"> & { body: string | null };
/** Either the stored first answer, or permission to produce it. */
type Claim = { replay: FirstAnswer } | { keep(answer: Kept): Promise<void>; release(): Promise<void> };

/** No request runs longer than this: it was interrupted, and may or may not have had an effect. */
const abandonedAfterMs = 5 * 60_000;
/** Only the fact of a larger answer is stored; otherwise query results would fill the database. */
const maxKeptBytes = 64 * 1024;
/** And of an account's large answers in a day, so many together: each key may ask for dozens a minute. */
const largeBytes = 4 * 1024;
const maxLargeBytes = 16 * 1024 * 1024;

/**
 * Admits one of several identical requests. @throws AppError idempotency_mismatch, or conflict while the first is
 * running
 */
export async function claimRequest(ctx: Ctx, request: IdempotentRequest): Promise<Claim> {
  // A key must not see answers that require a session.
  const who = ctx.actor.type === "session" ? [accountOf(ctx), "session"] : [accountOf(ctx)];
  const id = sha256Hex(JSON.stringify([...who, request.method, request.path, request.key]));
  // No body begins with `?`, as bodies are JSON.
  const bodyHash = sha256Hex(request.query + request.body);
  const now = ctx.now();
  const row = eq(idempotentRequests.id, id);
  const expired = lt(idempotentRequests.createdAt, addDays(now, -1));
  const {
    claimed,
    known: [known],
  } = await batch(ctx, {
    idempotentRequests: ctx.db.delete(idempotentRequests).where(and(row, expired)),
    claimed: ctx.db
      .insert(idempotentRequests)
      .values({ id, bodyHash, createdAt: now })
      .onConflictDoNothing()
      .returning({ id: idempotentRequests.id }),
    known: ctx.db.select().from(idempotentRequests).where(row),
  });
  const context = `idempotent_requests:${id}` as const;
  if (claimed.length > 0)
    return {
      async keep({ status, location, body }) {
        const bytes = Buffer.byteLength(body ?? "");
        const large = bytes > largeBytes && { accountId: accountOf(ctx), largeBytes: bytes };
        const isKept =
          body !== null &&
          bytes <= maxKeptBytes &&
          (!large || (await largeKept(ctx)) + bytes <= maxLargeBytes);
        await ctx.db
          .update(idempotentRequests)
          .set(
            isKept
              ? { status, responseSealed: ctx.secrets.seal(`${location ?? ""}\n${body}`, context), ...large }
              : { status },
          )
          .where(row);
      },
      async release() {
        await ctx.db.delete(idempotentRequests).where(row);
      },
    };
  if (known && known.bodyHash !== bodyHash) throw new AppError("idempotency_mismatch");
  if (!known || known.status === null)
    throw conflict(
      known && now.getTime() - known.createdAt.getTime() > abandonedAfterMs
        ? "The first request with this Idempotency-Key was interrupted. Check whether it had an effect, then use another key."
        : "The first request with this Idempotency-Key is still in progress. Try again in a moment.",
    );
  if (known.responseSealed === null)
    throw conflict(
      "The first request with this Idempotency-Key succeeded, but its answer was not stored, because it was a stream, too large, or more than is kept of an account's large answers in a day. It is not executed again.",
    );
  const answer = ctx.secrets.open(known.responseSealed, context);
  // Earlier versions stored the body alone.
  const [, location = "", body = answer] = /^((?:\/.*)?)\n([^]*)$/.exec(answer) ?? [];
  return { replay: { status: known.status, location: location || null, body } };
}

async function largeKept(ctx: Ctx): Promise<number> {
  const [found] = await ctx.db
    .select({ bytes: sql<number>`coalesce(sum(${idempotentRequests.largeBytes}), 0)` })
    .from(idempotentRequests)
    .where(and(eq(idempotentRequests.accountId, accountOf(ctx)), isNotNull(idempotentRequests.largeBytes)));
  return found?.bytes ?? 0;
}
