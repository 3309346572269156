import type { Database } from "../../protocol/api/databases.ts";
import type { Ctx } from "../ctx.ts";
import { AppError } from "../domain/app-error.ts";
import { call } from "./call.ts";

/** Rows that a statement would change, null if they cannot be counted; or why it was not tried. */
export type DryRun = { affectedRows: number | null } | { untried: string };

/** No transaction rolls them back. */
const advancing = /setval|nextval|next\s+value/i;
/**
 * PostgreSQL's own functions and commands do things beside that stay; MariaDB's agent has such a list of its own. Before
 * the first word may be comments, and WITH.
 */
const tried =
  /^(?:\s|--[^\n]*\n|\/\*(?:[^*]|\*(?!\/))*\*\/)*(?:with\b[^]*\b)?(?:insert|update|delete|merge)\b/i;

/** Runs a statement and rolls it back, before a person confirms it, unless something of it would stay. */
export async function dryRun(
  ctx: Ctx,
  { id, type }: Pick<Database, "id" | "type">,
  statement: string,
): Promise<DryRun> {
  if (type === "postgresql" && !tried.test(statement))
    return {
      untried:
        "only INSERT, UPDATE, DELETE and MERGE are tried, as PostgreSQL does not roll everything back.",
    };
  if (type !== "redis" && advancing.test(statement))
    return { untried: "it may set or advance a sequence, which is not rolled back." };
  try {
    const asked = { id, statement, write: false, dryRun: true, limit: 1, timeoutSeconds: 10 };
    const { affectedRows } = await call(ctx, "queryDatabase", asked);
    return { affectedRows };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { untried: reasonOf(error) };
  }
}

/** Why a statement was not run, or failed. */
export function reasonOf(error: AppError): string {
  const { issues, reason } = error.extra as { issues?: { message: string }[]; reason?: string };
  return issues?.[0]?.message ?? reason ?? error.message;
}
