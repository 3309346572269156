import type { ById } from "../../../protocol/api/common.ts";
import type { PackChange, PackChanged } from "../../../protocol/api/packs.ts";
import { isId } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { AppError } from "../../domain/app-error.ts";
import { requireFound } from "../owned.ts";
import { changePackOfDatabase, changePackOfSite } from "./change-pack.ts";

/** Whoever owns it. */
const requireThere = <Row>(_ctx: Ctx, row: Row | undefined): Row => requireFound(row);

/** As its owner would change it: what is dearer is invoiced to the owner, and holds once that is paid. */
export async function changeTermForOperator(ctx: Ctx, change: ById & PackChange): Promise<PackChanged> {
  if (isId("site", change.id)) return changePackOfSite(ctx, change, requireThere);
  if (isId("database", change.id)) return changePackOfDatabase(ctx, change, requireThere);
  throw new AppError("not_found");
}
