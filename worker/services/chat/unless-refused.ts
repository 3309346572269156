import type { Refused } from "../../ctx.ts";
import { AppError } from "../../domain/app-error.ts";

/** A refusal keeps its code across the call of a Durable Object as data; here it is an error again. @throws AppError */
export function unlessRefused<Answer extends object>(answer: Answer | Refused): Answer {
  if ("refused" in answer) throw new AppError(answer.refused.code, answer.refused.extra);
  return answer;
}
