import { and, eq, ne } from "drizzle-orm";
import type { Host, HostPatch } from "../../../protocol/api/hosts.ts";
import type { Ctx } from "../../ctx.ts";
import { hosts } from "../../db/schema.ts";
import { moveSites } from "../../jobs/hosts/move-sites.ts";
import { hostIdOf, hostNamed } from "./named.ts";
import { requireOperator } from "../require-operator.ts";

const statusAfter = { drain: "DRAINING", activate: "ACTIVE" } as const;

/** drain: no new sites, and those that are here move one by one; activate: as before. A move under way ends. */
export async function changeHost(ctx: Ctx, hostId: string, { action }: HostPatch): Promise<Host> {
  requireOperator(ctx);
  const id = hostIdOf(hostId);
  await ctx.db
    .update(hosts)
    .set({ status: statusAfter[action] })
    .where(and(eq(hosts.id, id), ne(hosts.status, "REMOVED")));
  const host = await hostNamed(ctx, id);
  if (action === "drain") await moveSites(ctx);
  else ctx.hosts.wake(id);
  return host;
}
