import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { query } from "../middleware/body.ts";
import { cancelDeployment } from "../services/deployments/cancel.ts";
import { deploymentOwnedBy } from "../services/deployments/owned.ts";
import { deploymentView } from "../services/deployments/view.ts";

export const deployments = new Hono<AppEnv>()
  .get("/:id", async (c) => c.json(deploymentView(await deploymentOwnedBy(c.var.ctx, c.req.param("id")))))
  .post("/:id/cancel", async (c) => c.json(await cancelDeployment(c.var.ctx, c.req.param("id")), 202))
  .get("/:id/logs", query(operations.getDeploymentLogs.query), async (c) => {
    const { id } = await deploymentOwnedBy(c.var.ctx, c.req.param("id"));
    const { follow, limit, cursor } = c.req.valid("query");
    const log = c.env.DEPLOYMENT_LOG.get(c.env.DEPLOYMENT_LOG.idFromName(id));
    if (follow === "1") {
      const resumeAfter = Number(c.req.header("Last-Event-ID") ?? cursor);
      const events = await log.follow(Number.isSafeInteger(resumeAfter) && resumeAfter > 0 ? resumeAfter : 0);
      return c.body(events, 200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    }
    const lines = await log.read(cursor, limit);
    return c.json({ data: lines, nextCursor: lines.length === limit ? String(lines.at(-1)?.seq) : null });
  });
