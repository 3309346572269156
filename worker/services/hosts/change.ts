import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, ne } from "drizzle-orm";
import type { Host, HostPatch } from "../../../protocol/api/hosts.ts";
import type { Ctx } from "../../ctx.ts";
import { hosts } from "../../db/schema.ts";
import { hintDns } from "../../jobs/dns/reconcile.ts";
import { moveSites } from "../../jobs/hosts/move-sites.ts";
import { idIn } from "../owned.ts";
import { hostNamed } from "./named.ts";

const statusAfter = { drain: "DRAINING", activate: "ACTIVE" } as const;

/**
 * The addresses lead visitors to its sites. Of its memory, no more than `memoryMb` is used. drain: no new sites, and the existing
 * ones move one by one. activate: back to normal, and moves in progress are cancelled.
 */
export async function changeHost(
  ctx: Ctx,
  { id: hostId, action, ipv4, ipv6, memoryMb }: ById & HostPatch,
): Promise<Host> {
  const id = idIn("host", hostId);
  await ctx.db.batch([
    ctx.db
      .update(hosts)
      .set({
        ...(action && { status: statusAfter[action] }),
        ipv4,
        ipv6,
        ...(memoryMb !== undefined && {
          memoryLimitMb: memoryMb ?? hosts.memoryMb,
          memoryKnownMb: hosts.memoryMb,
        }),
      })
      .where(and(eq(hosts.id, id), ne(hosts.status, "REMOVED"))),
  ]);
  const host = await hostNamed(ctx, id);
  if (action === "drain") await moveSites(ctx);
  else if (action === "activate" || memoryMb !== undefined) ctx.hosts.wake(id);
  if (ipv4 !== undefined || ipv6 !== undefined) hintDns(ctx);
  return host;
}
