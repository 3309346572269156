import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { body, query } from "../middleware/body.ts";
import { listFlags, resolveFlag } from "../services/payments/flags.ts";

/** Operators only. */
export const payments = new Hono<AppEnv>()
  .get("/flagged", query(operations.listPaymentFlags.query), async (c) =>
    c.json(await listFlags(c.var.ctx, c.req.valid("query"))),
  )
  .post("/flagged/:id/resolve", body(operations.resolvePaymentFlag.body), async (c) =>
    c.json(await resolveFlag(c.var.ctx, c.req.param("id"), c.req.valid("json"))),
  );
