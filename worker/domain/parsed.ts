import type * as z from "zod";
import { AppError } from "./app-error.ts";

type Issue = z.core.$ZodIssue;

/** For a union: the issues of the variant that the keys identify, if they do. */
function flatten(issue: Issue): Issue[] {
  if (issue.code !== "invalid_union") return [issue];
  const meant = issue.errors.filter(
    (form) => !form.some(({ code, path }) => code === "unrecognized_keys" && path.length === 0),
  );
  const about = new Set(meant.flatMap((form) => form.map(({ path }) => path[0])));
  if (about.size !== 1 || about.has(undefined)) return [issue];
  const all = meant.flat().flatMap((one) => flatten({ ...one, path: [...issue.path, ...one.path] }));
  // What several variants say is said once.
  return [...new Map(all.map((one) => [JSON.stringify([one.path, one.message]), one])).values()];
}

/** The only place where a schema error becomes a 400. */
export function refusalBy({ issues }: Pick<z.core.$ZodError, "issues">): AppError {
  const shown = issues.flatMap(flatten).map(({ path, message }) => ({ path: path.join("."), message }));
  return new AppError("invalid_request", { issues: shown });
}

/** @throws AppError invalid_request */
export function parsed<Schema extends z.ZodType>(schema: Schema, given: unknown): z.infer<Schema> {
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  throw refusalBy(result.error);
}
