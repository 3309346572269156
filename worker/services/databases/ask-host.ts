import type { Answer, Question, ServerQuestion } from "../../../protocol/agent/running.ts";
import type { Ctx } from "../../context.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { currentLogin } from "./logins.ts";
import type { DatabaseRow } from "./owned.ts";
import { refuseUnpaid } from "./refuse-unpaid.ts";

type AnswerTo<K> = Extract<Answer, { kind: K }>;
type Server = Pick<ServerQuestion, "databaseId" | "type" | "databaseName" | "login">;

/** Asks the host of a database; null for one that no host ever had. @throws AppError when it is refused */
export async function askHostOf<K extends Question["kind"]>(
  ctx: Ctx,
  database: DatabaseRow,
  question: Extract<Question, { kind: K }>,
): Promise<AnswerTo<K> | null> {
  if (database.hostId === null) return null;
  const answer = await ctx.questions.ask(database.hostId, question);
  if (answer.kind === "refused") throw conflict(answer.error);
  if (answer.kind === "statementRefused") throw invalid("statement", answer.error);
  if (answer.kind !== question.kind) throw new Error(`A host answered ${answer.kind} to ${question.kind}`);
  return answer as AnswerTo<K>;
}

/** Asks the database's own server. The login is opened only here, on its way to the host. */
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

/** @throws AppError payment_required, conflict when there is no server to ask */
export async function demandServer(ctx: Ctx, database: DatabaseRow): Promise<void> {
  await refuseUnpaid(ctx, database);
  if (database.status !== "RUNNING")
    throw conflict(`A ${database.status} database cannot be asked: it is to be RUNNING.`);
}
