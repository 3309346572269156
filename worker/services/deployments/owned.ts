import { eq } from "drizzle-orm";
import { isId } from "../../../protocol/ids.ts";
import { accountOf, type Ctx } from "../../context.ts";
import { deployments } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import type { DeploymentRow } from "./view.ts";

/** The only way to a deployment by id: not_found, then forbidden. */
export async function deploymentOwnedBy(ctx: Ctx, deploymentId: string): Promise<DeploymentRow> {
  if (!isId("deployment", deploymentId)) throw new AppError("not_found");
  const [row] = await ctx.db.select().from(deployments).where(eq(deployments.id, deploymentId));
  if (!row) throw new AppError("not_found");
  if (row.accountId !== accountOf(ctx)) throw new AppError("forbidden");
  return row;
}
