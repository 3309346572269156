import type { Backup } from "../../../protocol/api/backups.ts";
import type { ById } from "../../../protocol/api/common.ts";
import type { Ctx } from "../../ctx.ts";
import { backupOwnedBy } from "./owned.ts";
import { backupView } from "./view.ts";

export const getBackup = async (ctx: Ctx, { id }: ById): Promise<Backup> =>
  backupView(await backupOwnedBy(ctx, id));
