import type { ById } from "../../../protocol/api/common.ts";
import type { Database, DatabaseActionAccepted, DatabasePatch } from "../../../protocol/api/databases.ts";
import type { PackChanged } from "../../../protocol/api/packs.ts";
import type { Ctx } from "../../ctx.ts";
import { scheduleBackups } from "../backups/schedule.ts";
import { changePackOfDatabase } from "../terms/change-pack.ts";
import { actOnDatabase } from "./act.ts";
import { exposeDatabase } from "./expose.ts";

type Changed = Database | PackChanged | DatabaseActionAccepted;

/** Applies exactly one kind of change, as the schema ensures. */
export async function changeDatabase(ctx: Ctx, change: ById & DatabasePatch): Promise<Changed> {
  if ("packId" in change) return changePackOfDatabase(ctx, change);
  if ("backups" in change) return scheduleBackups(ctx, change);
  if ("publicAccess" in change) return exposeDatabase(ctx, change);
  return actOnDatabase(ctx, change);
}
