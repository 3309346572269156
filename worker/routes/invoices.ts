import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { body, query } from "../middleware/body.ts";
import { getInvoice } from "../services/invoices/get.ts";
import { listInvoices } from "../services/invoices/list.ts";
import { voidInvoice } from "../services/invoices/void.ts";
import { refundInvoice } from "../services/payments/refund.ts";

export const invoices = new Hono<AppEnv>()
  .get("/", query(operations.listInvoices.query), async (c) =>
    c.json(await listInvoices(c.var.ctx, c.req.valid("query"))),
  )
  .get("/:id", async (c) => c.json(await getInvoice(c.var.ctx, c.req.param("id"))))
  .post("/:id/void", async (c) => c.json(await voidInvoice(c.var.ctx, c.req.param("id"))))
  .post("/:id/refund", body(operations.refundInvoice.body), async (c) =>
    c.json(await refundInvoice(c.var.ctx, c.req.param("id"), c.req.valid("json"))),
  );
