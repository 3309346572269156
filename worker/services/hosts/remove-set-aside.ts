import type { SetAsideRemoved } from "../../../protocol/api/hosts.ts";
import { isId, type Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { unnamedOf } from "./list-set-aside.ts";
import { hostIdOf, hostNamed } from "./named.ts";
import { requireOperator } from "../require-operator.ts";

/** Data and all, for good: never what a record puts there. */
export async function removeSetAside(ctx: Ctx, hostId: string, keptId: string): Promise<SetAsideRemoved> {
  requireOperator(ctx);
  const { id: host } = await hostNamed(ctx, hostIdOf(hostId));
  if (!isId("site", keptId) && !isId("database", keptId)) throw new AppError("not_found");
  const [unnamed] = await unnamedOf(ctx, host as Id<"host">, [keptId]);
  if (unnamed === undefined)
    throw conflict("A record puts this on the host: delete the site or the database itself.");
  const held = await ctx.questions.ask(host as Id<"host">, { kind: "held" });
  if (held.kind === "held" && !held.ids.includes(keptId)) throw new AppError("not_found");
  const answer = await ctx.questions.ask(host as Id<"host">, { kind: "removeKept", id: keptId });
  if (answer.kind === "refused") throw conflict(answer.error);
  return { id: keptId, removed: true };
}
