import type { Answer, Question } from "../../../protocol/agent/running.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { AppError, conflict, invalid } from "../../domain/app-error.ts";
import { siteOwnedBy } from "../sites/owned.ts";

type Kind = Question["kind"];
export type AnswerTo<K extends Kind> = Extract<Answer, { kind: K }>;
/** A site or a database; its host knows it by this id. */
export type Hosted = { id: Id<"site" | "database">; hostId: Id<"host"> | null };

/**
 * Sends a question to the site's host; null if the site was never placed. @throws AppError conflict if the host does
 * not answer
 */
export async function askHost<K extends Kind>(
  ctx: Ctx,
  siteId: string,
  question: (siteId: Id<"site">) => Extract<Question, { kind: K }>,
): Promise<AnswerTo<K> | null> {
  const site = await siteOwnedBy(ctx, siteId);
  return askHostOf<K>(ctx, site, question(site.id));
}

/** The same for a resource that was already read. */
export const askHostOf = async <K extends Kind>(
  ctx: Ctx,
  { hostId }: Hosted,
  asked: Extract<Question, { kind: K }>,
): Promise<AnswerTo<K> | null> => (hostId === null ? null : askThis<K>(ctx, hostId, asked));

/**
 * The same for one host. @throws AppError also not_found, where the host has nothing of that name, and invalid_request, for
 * a statement that its server refuses
 */
export async function askThis<K extends Kind>(
  ctx: Ctx,
  hostId: Id<"host">,
  asked: Extract<Question, { kind: K }>,
): Promise<AnswerTo<K>> {
  const answer = await ctx.questions.ask(hostId, asked);
  if (answer.kind === "refused" && answer.isMissing)
    throw new AppError("not_found", { reason: answer.error });
  if (answer.kind === "refused") throw conflict(answer.error);
  if (answer.kind === "statementRefused") throw invalid("statement", answer.error);
  if (answer.kind !== asked.kind) throw new Error(`A host answered ${answer.kind} to ${asked.kind}`);
  return answer as AnswerTo<K>;
}
