import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { query } from "../middleware/body.ts";
import { cancelCommand } from "../services/commands/cancel.ts";
import { commandOwnedBy } from "../services/commands/owned.ts";
import { commandView } from "../services/commands/view.ts";
import { answerLog } from "./answer-log.ts";

export const commands = new Hono<AppEnv>()
  .get("/:id", async (c) => c.json(commandView(await commandOwnedBy(c.var.ctx, c.req.param("id")))))
  .post("/:id/cancel", async (c) => c.json(await cancelCommand(c.var.ctx, c.req.param("id")), 202))
  .get("/:id/logs", query(operations.getCommandLogs.query), async (c) => {
    const row = await commandOwnedBy(c.var.ctx, c.req.param("id"));
    return answerLog(c, row, c.req.valid("query"));
  });
