import { and, eq, or } from "drizzle-orm";
import type { ById } from "../../../protocol/api/common.ts";
import type { Id } from "../../../protocol/ids.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { sites } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";

/** The caller's site of this name or id: nobody else's is looked at. @throws AppError not_found */
export async function findSite(ctx: Ctx, nameOrId: string): Promise<ById> {
  const [found] = await ctx.db
    .select({ id: sites.id })
    .from(sites)
    .where(
      and(
        eq(sites.accountId, accountOf(ctx)),
        or(eq(sites.name, nameOrId), eq(sites.id, nameOrId as Id<"site">)),
      ),
    );
  if (!found) throw new AppError("not_found", { reason: `The account has no site ${nameOrId}.` });
  return found;
}
