import { eq } from "drizzle-orm";
import { isId, type Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { deployments } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { requireOwned } from "../owned.ts";
import { selectDeployments, type DeploymentRecord } from "./view.ts";

/** Parses a deployment id. @throws AppError not_found */
export function deploymentIdOf(text: string): Id<"deployment"> {
  if (!isId("deployment", text)) throw new AppError("not_found");
  return text;
}

/** The query for a deployment, for a batch whose first result is passed to `requireOwned`. */
export const deploymentById = (ctx: Ctx, id: Id<"deployment">) =>
  selectDeployments(ctx.db).where(eq(deployments.id, id));

/** A single deployment: not_found, then forbidden. */
export async function deploymentOwnedBy(ctx: Ctx, deploymentId: string): Promise<DeploymentRecord> {
  const [row] = await deploymentById(ctx, deploymentIdOf(deploymentId));
  return requireOwned(ctx, row);
}
