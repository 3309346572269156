import type { ServerQuestion } from "../../../protocol/agent/running.ts";
import type { Ctx } from "../../ctx.ts";
import { conflict } from "../../domain/app-error.ts";
import { refuseUnpaid } from "../refuse-unpaid.ts";
import { askHostOf, type AnswerTo } from "../running/ask-host.ts";
import { currentLogin } from "../../jobs/databases/logins.ts";
import type { DatabaseRow } from "../../db/rows.ts";

type Server = Pick<ServerQuestion, "databaseId" | "type" | "databaseName" | "login">;

/** Sends a question to the database's own server. The login is decrypted only here, for the host. */
export async function askServer<K extends ServerQuestion["kind"]>(
  ctx: Ctx,
  database: DatabaseRow,
  question: (server: Server) => Extract<ServerQuestion, { kind: K }>,
): Promise<AnswerTo<K>> {
  await demandServer(ctx, database);
  const { id, type, databaseName } = database;
  const asked = question({ databaseId: id, type, databaseName, login: currentLogin(ctx, database) });
  const answer = await askHostOf<ServerQuestion["kind"]>(ctx, database, asked);
  return answer as AnswerTo<K>;
}

/** @throws AppError payment_required; conflict if no server is running */
export async function demandServer(ctx: Ctx, database: DatabaseRow): Promise<void> {
  await refuseUnpaid(ctx, database);
  if (database.status !== "RUNNING")
    throw conflict(`A ${database.status} database cannot be queried. It must be RUNNING.`);
}
