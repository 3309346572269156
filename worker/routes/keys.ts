import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { accountOf } from "../ctx.ts";
import { body, query } from "../middleware/body.ts";
import { takeFrom } from "../middleware/limit.ts";
import { createKey } from "../services/keys/create.ts";
import { listKeys } from "../services/keys/list.ts";
import { requireSession } from "../services/keys/require-session.ts";
import { revokeKey } from "../services/keys/revoke.ts";

/** With a session only. */
export const keys = new Hono<AppEnv>()
  .get("/", query(operations.listKeys.query), async (c) =>
    c.json(await listKeys(c.var.ctx, c.req.valid("query"))),
  )
  .post("/", body(operations.createKey.body), async (c) => {
    requireSession(c.var.ctx);
    await takeFrom(c, "keyMade", accountOf(c.var.ctx));
    c.set("shownOnce", ["key"]);
    return c.json(await createKey(c.var.ctx, c.req.valid("json")), 201);
  })
  .delete("/:id", async (c) => c.json({ ...(await revokeKey(c.var.ctx, c.req.param("id"))), revoked: true }));
