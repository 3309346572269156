import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { body } from "../middleware/body.ts";
import { changeSchedule } from "../services/schedules/change.ts";
import { removeSchedule } from "../services/schedules/remove.ts";

export const schedules = new Hono<AppEnv>()
  .patch("/:id", body(operations.patchSchedule.body), async (c) =>
    c.json(await changeSchedule(c.var.ctx, c.req.param("id"), c.req.valid("json"))),
  )
  .delete("/:id", async (c) => c.json(await removeSchedule(c.var.ctx, c.req.param("id"))));
