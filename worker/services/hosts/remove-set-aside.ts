import type { ById } from "../../../protocol/api/common.ts";
import type { SetAsideRemoved } from "../../../protocol/api/hosts.ts";
import { isId } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { idIn } from "../owned.ts";
import { heldBy, spareVolumesOf, unnamedOf } from "./list-set-aside.ts";
import { hostNamed } from "./named.ts";

/** Permanently deletes it with its data, unless a record assigns it to the host. */
export async function removeSetAside(
  ctx: Ctx,
  { id: hostId, keptId }: ById & { keptId: string },
): Promise<SetAsideRemoved> {
  const host = idIn("host", hostId);
  await hostNamed(ctx, host);
  if (!isId("site", keptId) && !isId("database", keptId)) throw new AppError("not_found");
  const [unnamed] = await unnamedOf(ctx, host, [keptId]);
  if (unnamed === undefined && isId("site", keptId)) throw isNamed();
  const held = await heldBy(ctx, host);
  if (!held.ids.includes(keptId)) throw new AppError("not_found");
  const own = (held.databases ?? []).filter(({ id }) => id === keptId);
  const [spare] = unnamed === undefined ? await spareVolumesOf(ctx, host, own) : [];
  if (unnamed === undefined && !spare) throw isNamed();
  const answer = await ctx.questions.ask(
    host,
    spare ? { kind: "removeKeptVolumes", database: spare } : { kind: "removeKept", id: keptId },
  );
  if (answer.kind === "refused") throw conflict(answer.error);
  return { id: keptId, removed: true };
}

const isNamed = () => conflict("A record assigns this to the host. Delete the site or the database itself.");
