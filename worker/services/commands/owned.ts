import { eq } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { commands } from "../../db/schema.ts";
import { idIn, requireOwned } from "../owned.ts";
import { selectCommands, type CommandRow } from "./view.ts";

/** The query for a command, for a batch whose first result is passed to `requireOwned`. */
export const commandById = (ctx: Ctx, id: Id<"command">) => selectCommands(ctx.db).where(eq(commands.id, id));

/** A single command: not_found, then forbidden. */
export async function commandOwnedBy(ctx: Ctx, commandId: string): Promise<CommandRow> {
  const [row] = await commandById(ctx, idIn("command", commandId));
  return requireOwned(ctx, row);
}
