import { Hono } from "hono";
import { accepts } from "hono/accepts";
import { html } from "hono/html";
import type { Context } from "hono";
import type { AppEnv } from "../app-env.ts";
import { limitAddress } from "../middleware/limit.ts";
import { actAs } from "../middleware/context.ts";
import { InvoicePage } from "../pages/invoice.tsx";
import { getInvoiceByToken } from "../services/invoices/get-by-token.ts";
import { payInvoice } from "../services/invoices/pay.ts";

const wantsJson = (c: Context<AppEnv>) =>
  accepts(c, { header: "Accept", supports: ["text/html", "application/json"], default: "text/html" }) ===
  "application/json";

/** The token is the credential: shown and paid without signing in. */
export const invoicePage = new Hono<AppEnv>()
  .use(limitAddress, actAs("link"))
  .get("/:token", async (c) => {
    const invoice = await getInvoiceByToken(c.var.ctx, c.req.param("token"));
    if (wantsJson(c)) return c.json(invoice);
    return c.html(html`<!doctype html>${<InvoicePage invoice={invoice} />}`);
  })
  .post("/:token/pay", async (c) => {
    const invoice = await payInvoice(c.var.ctx, c.req.param("token"));
    return wantsJson(c) ? c.json(invoice) : c.redirect(`/invoice/${invoice.token}`, 303);
  });
