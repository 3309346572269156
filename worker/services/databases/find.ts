import { and, eq, or } from "drizzle-orm";
import type { ById } from "../../../protocol/api/common.ts";
import type { Id } from "../../../protocol/ids.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { databases } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";

/** The caller's database of this name or id: nobody else's is looked at. @throws AppError not_found */
export async function findDatabase(ctx: Ctx, nameOrId: string): Promise<ById> {
  const [found] = await ctx.db
    .select({ id: databases.id })
    .from(databases)
    .where(
      and(
        eq(databases.accountId, accountOf(ctx)),
        or(eq(databases.name, nameOrId), eq(databases.id, nameOrId as Id<"database">)),
      ),
    );
  if (!found) throw new AppError("not_found", { reason: `The account has no database ${nameOrId}.` });
  return found;
}
