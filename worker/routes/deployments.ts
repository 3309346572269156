import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { query } from "../middleware/body.ts";
import { cancelDeployment } from "../services/deployments/cancel.ts";
import { deploymentOwnedBy } from "../services/deployments/owned.ts";
import { deploymentView } from "../services/deployments/view.ts";
import { answerLog } from "./answer-log.ts";

export const deployments = new Hono<AppEnv>()
  .get("/:id", async (c) => c.json(deploymentView(await deploymentOwnedBy(c.var.ctx, c.req.param("id")))))
  .post("/:id/cancel", async (c) => c.json(await cancelDeployment(c.var.ctx, c.req.param("id")), 202))
  .get("/:id/logs", query(operations.getDeploymentLogs.query), async (c) => {
    const row = await deploymentOwnedBy(c.var.ctx, c.req.param("id"));
    return answerLog(c, row, c.req.valid("query"));
  });
