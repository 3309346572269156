import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { query } from "../middleware/body.ts";
import { getInvoice } from "../services/invoices/get.ts";
import { listInvoices } from "../services/invoices/list.ts";

export const invoices = new Hono<AppEnv>()
  .get("/", query(operations.listInvoices.query), async (c) =>
    c.json(await listInvoices(c.var.ctx, c.req.valid("query"))),
  )
  .get("/:id", async (c) => c.json(await getInvoice(c.var.ctx, c.req.param("id"))));
