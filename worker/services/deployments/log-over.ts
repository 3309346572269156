import { eq } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { commands, deployments } from "../../db/schema.ts";

/** After this time the log has its last line, or never will: logs expire, and a notification of the end may be lost. */
const lastLineMs = 60_000;

/** Whether the log of this deployment or command is complete according to the database. */
export async function isLogOver(ctx: Ctx, id: Id<"deployment" | "command">): Promise<boolean> {
  const {
    deployment: [deployment],
    command: [command],
  } = await batch(ctx, {
    deployment: ctx.db
      .select({ finishedAt: deployments.finishedAt })
      .from(deployments)
      .where(eq(deployments.id, id as Id<"deployment">)),
    command: ctx.db
      .select({ finishedAt: commands.finishedAt })
      .from(commands)
      .where(eq(commands.id, id as Id<"command">)),
  });
  const logged = deployment ?? command;
  return logged === undefined || isOver(ctx, logged.finishedAt);
}

/** The same for a row that was already read. */
export const isOver = (ctx: Ctx, finishedAt: Date | null): boolean =>
  finishedAt !== null && finishedAt.getTime() < ctx.now().getTime() - lastLineMs;
