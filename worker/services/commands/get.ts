import type { Command } from "../../../protocol/api/commands.ts";
import type { ById } from "../../../protocol/api/common.ts";
import type { Ctx } from "../../ctx.ts";
import { commandOwnedBy } from "./owned.ts";
import { commandView } from "./view.ts";

export const getCommand = async (ctx: Ctx, { id }: ById): Promise<Command> =>
  commandView(await commandOwnedBy(ctx, id));
