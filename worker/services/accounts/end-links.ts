import { sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";

/**
 * Ends the account's mailed links and the sign-ins that wait for a second step: they were for the password or the address as it
 * was. Codes that were used stay used.
 */
export const endLinks = (ctx: Ctx, accountId: Id<"account">) =>
  ctx.statement(sql`DELETE FROM verifications WHERE value = ${accountId} AND identifier <> 'used-code'`);
