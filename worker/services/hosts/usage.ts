import type { ById } from "../../../protocol/api/common.ts";
import type { HostUsage } from "../../../protocol/api/hosts.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { conflict } from "../../domain/app-error.ts";
import { idIn } from "../owned.ts";
import { hostNamed } from "./named.ts";

/** What is used of the machine, as its agent measures it now. Nothing is stored. @throws AppError conflict */
export async function hostUsage(ctx: Ctx, { id: hostId }: ById): Promise<HostUsage> {
  const { id } = await hostNamed(ctx, idIn("host", hostId));
  const answer = await ctx.questions.ask(id as Id<"host">, { kind: "machine" });
  if (answer.kind === "refused") throw conflict(answer.error);
  if (answer.kind !== "machine") throw new Error(`A host answered ${answer.kind} to machine`);
  return answer.usage;
}
