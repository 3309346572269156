import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { body } from "../middleware/body.ts";
import { rotateSecrets } from "../services/secrets/rotate.ts";

/** Operators only. */
export const secrets = new Hono<AppEnv>().post("/rotate", body(operations.rotateSecrets.body), async (c) =>
  c.json(await rotateSecrets(c.var.ctx, c.req.valid("json"))),
);
