import { AppError } from "../domain/app-error.ts";

/** The answer of a route whose capability has no service verb yet, after all its checks. @throws AppError not_implemented */
export const notBuilt = (what: string): never => {
  throw new AppError("not_implemented", { reason: `${what}: this installation cannot do that yet.` });
};
