import type { Deployment } from "../../../protocol/api/deployments.ts";
import type { ById } from "../../../protocol/api/common.ts";
import type { Ctx } from "../../ctx.ts";
import { deploymentOwnedBy } from "./owned.ts";
import { deploymentView } from "./view.ts";

export const getDeployment = async (ctx: Ctx, { id }: ById): Promise<Deployment> =>
  deploymentView(await deploymentOwnedBy(ctx, id));
