import type { ById } from "../../../protocol/api/common.ts";
import type { DatabaseQuery, DatabaseQueryResult, WriteConfirmation } from "../../../protocol/api/insight.ts";
import type { ServerQuestion } from "../../../protocol/agent/running.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { AppError, invalid } from "../../domain/app-error.ts";
import {
  confirmWithinMs,
  mintConfirmation,
  readConfirmation,
  type Confirmed,
} from "../../domain/confirmation.ts";
import { deriveKey } from "../../domain/tokens.ts";
import { askServer, demandServer } from "./ask-host.ts";
import { databaseOwnedBy } from "./owned.ts";

type Write = Extract<ServerQuestion, { kind: "query" }>["write"];

/**
 * Runs one statement. A statement that may write is first answered with a confirmation, and runs when repeated with
 * it.
 */
export async function queryDatabase(
  ctx: Ctx,
  { id: databaseId, statement, write, confirm, dryRun, limit, timeoutSeconds }: ById & DatabaseQuery,
): Promise<DatabaseQueryResult> {
  const database = await databaseOwnedBy(ctx, databaseId);
  await demandServer(ctx, database);
  if (write && dryRun) throw invalid("dryRun", "a dry run writes nothing: leave out `write`");
  const confirmed = { accountId: accountOf(ctx), databaseId: database.id, statement };
  const consent = write ? consentTo(ctx, confirmed, confirm) : null;
  const { result } = await askServer<"query">(ctx, database, (server) => ({
    kind: "query",
    statement,
    write: consent,
    dryRun,
    limit,
    timeoutMs: timeoutSeconds * 1000,
    ...server,
  }));
  return result;
}

/** @throws AppError conflict with a new confirmation, unless a valid one was given */
function consentTo(ctx: Ctx, confirmed: Confirmed, confirm: string | undefined): Write {
  const key = deriveKey(ctx.config.SECRET_KEY, "confirm-statement");
  const nowMs = ctx.now().getTime();
  const read = confirm === undefined ? null : readConfirmation(key, confirmed, confirm, nowMs);
  if (read) return { nonce: read.nonce, expiresAt: new Date(read.expiresAtMs).toISOString() };
  const expiresAtMs = nowMs + confirmWithinMs;
  const asked: WriteConfirmation = {
    reason:
      confirm === undefined
        ? "This statement may change or delete data. Send it again with `confirm` to run it."
        : "The confirmation is for another statement or database, or has expired. Send the statement again with this one.",
    confirm: mintConfirmation(key, confirmed, expiresAtMs, ctx.random(12)),
    expiresAt: new Date(expiresAtMs).toISOString(),
  };
  throw new AppError("conflict", asked);
}
