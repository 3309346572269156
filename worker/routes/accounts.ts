import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { body, query } from "../middleware/body.ts";
import { changeAccount } from "../services/accounts/change.ts";
import { listAccounts } from "../services/accounts/list.ts";

/** Operators only. */
export const accounts = new Hono<AppEnv>()
  .get("/", query(operations.listAccounts.query), async (c) =>
    c.json(await listAccounts(c.var.ctx, c.req.valid("query"))),
  )
  .patch("/:id", body(operations.patchAccount.body), async (c) =>
    c.json(await changeAccount(c.var.ctx, c.req.param("id"), c.req.valid("json"))),
  );
