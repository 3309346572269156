import { eq } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { deployments } from "../../db/schema.ts";
import { idIn, requireOwned } from "../owned.ts";
import { selectDeployments, type DeploymentRecord } from "./view.ts";

/** The query for a deployment, for a batch whose first result is passed to `requireOwned`. */
export const deploymentById = (ctx: Ctx, id: Id<"deployment">) =>
  selectDeployments(ctx).where(eq(deployments.id, id));

/** A single deployment: not_found, then forbidden. */
export async function deploymentOwnedBy(ctx: Ctx, deploymentId: string): Promise<DeploymentRecord> {
  const [row] = await deploymentById(ctx, idIn("deployment", deploymentId));
  return requireOwned(ctx, row);
}
