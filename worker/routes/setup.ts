import { Hono } from "hono";
import { entryOperations } from "../../protocol/api/entry-operations.ts";
import { Setup } from "../../protocol/api/setup.ts";
import type { AppEnv } from "../app-env.ts";
import { bearerOf } from "../middleware/authenticate.ts";
import { body, limitBody, requireJson } from "../middleware/body.ts";
import { actAs } from "../middleware/context.ts";
import { knownQuery } from "../middleware/known-query.ts";
import { limitAddress } from "../middleware/limit.ts";
import { runSetup } from "../services/setup/run.ts";

/** Creates the first operator account, once, with SETUP_TOKEN as the bearer token. */
export const setup = new Hono<AppEnv>().post(
  "/",
  limitAddress,
  knownQuery(entryOperations.setUp),
  actAs("system"),
  limitBody,
  requireJson,
  body(Setup),
  async (c) => {
    return c.json(await runSetup(c.var.ctx, bearerOf(c), c.req.valid("json")), 201);
  },
);
