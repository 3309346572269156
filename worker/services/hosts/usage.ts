import type { ById } from "../../../protocol/api/common.ts";
import type { HostUsage } from "../../../protocol/api/hosts.ts";
import type { Ctx } from "../../ctx.ts";
import { idIn } from "../owned.ts";
import { askThis } from "../running/ask-host.ts";
import { hostNamed } from "./named.ts";

/** What is used of the machine, as its agent measures it now. Nothing is stored. @throws AppError conflict */
export async function hostUsage(ctx: Ctx, { id: hostId }: ById): Promise<HostUsage> {
  const id = idIn("host", hostId);
  await hostNamed(ctx, id);
  return (await askThis<"machine">(ctx, id, { kind: "machine" })).usage;
}
