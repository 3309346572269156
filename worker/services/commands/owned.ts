import { eq } from "drizzle-orm";
import { isId, type Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { commands } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { requireOwned } from "../owned.ts";
import { selectCommands, type CommandRow } from "./view.ts";

/** Parses a command id. @throws AppError not_found */
export function commandIdOf(text: string): Id<"command"> {
  if (!isId("command", text)) throw new AppError("not_found");
  return text;
}

/** The query for a command, for a batch whose first result is passed to `requireOwned`. */
export const commandById = (ctx: Ctx, id: Id<"command">) => selectCommands(ctx.db).where(eq(commands.id, id));

/** A single command: not_found, then forbidden. */
export async function commandOwnedBy(ctx: Ctx, commandId: string): Promise<CommandRow> {
  const [row] = await commandById(ctx, commandIdOf(commandId));
  return requireOwned(ctx, row);
}
