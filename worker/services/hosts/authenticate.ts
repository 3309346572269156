import { and, eq, ne } from "drizzle-orm";
import { HostToken } from "../../../protocol/api/hosts.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { hosts } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { sha256Hex } from "../../domain/tokens.ts";

/** The host that an agent's token belongs to. */
export async function authenticateHost(ctx: Ctx, token: string): Promise<Id<"host">> {
  if (!HostToken.safeParse(token).success) throw new AppError("unauthorized");
  const [host] = await ctx.db
    .select({ id: hosts.id })
    .from(hosts)
    .where(and(eq(hosts.tokenHash, sha256Hex(token)), ne(hosts.status, "REMOVED")));
  if (!host) throw new AppError("unauthorized");
  return host.id;
}
