import { Hono } from "hono";
import type { Context } from "hono";
import { entryOperations } from "../../protocol/api/entry-operations.ts";
import type { OwnAccount } from "../../protocol/api/accounts.ts";
import { InvoicePageQuery, type Invoice } from "../../protocol/api/invoices.ts";
import type { AppEnv } from "../app-env.ts";
import type { Ctx } from "../ctx.ts";
import { query } from "../middleware/body.ts";
import { knownQuery } from "../middleware/known-query.ts";
import { limitAddress } from "../middleware/limit.ts";
import { actAs } from "../middleware/context.ts";
import { say } from "../middleware/page.ts";
import { money } from "../pages/money.ts";
import { InvoicePage } from "../pages/billing/invoice.tsx";
import { show } from "./show.ts";
import { noteViewer } from "./viewer.ts";
import { invoicePdf } from "../pages/invoice-pdf.ts";
import { getInvoiceByToken, isOwnerOf, lastPayment } from "../services/invoices/get-by-token.ts";
import { payInvoice, payInvoiceAtOnce } from "../services/invoices/pay.ts";
import { reconcileInvoice } from "../billing/payments/reconcile.ts";

/** Browsers, which accept HTML explicitly, get the page; any other client gets JSON. */
const wantsPage = (c: Context<AppEnv>): boolean => c.req.header("Accept")?.includes("text/html") ?? false;

/** Where the owner of what was ordered is led at once: to the build, or to the database. Others stay at the invoice. */
async function afterPayment(
  ctx: Ctx,
  { kind, resource }: Invoice,
  viewer: OwnAccount | undefined,
): Promise<string | null> {
  if ((kind !== "site" && kind !== "database") || !resource || !viewer) return null;
  if (!(await isOwnerOf(ctx, viewer.id, resource))) return null;
  return kind === "site"
    ? `/sites/${resource.id}/newest-deployment`
    : `/databases/${resource.id}/after-payment`;
}

/** The token is the credential: no sign-in is needed to view and pay. */
export const invoicePage = new Hono<AppEnv>()
  .use(limitAddress, actAs("link"))
  .get(
    "/:token",
    knownQuery(entryOperations.getInvoiceByToken),
    query(InvoicePageQuery),
    noteViewer,
    async (c) => {
      const { ctx } = c.var;
      let invoice = await getInvoiceByToken(ctx, c.req.param("token"));
      const isUnsettled = invoice.status === "unpaid" || invoice.status === "void";
      // The customer returns from the processor: query it, since its event may be delayed or lost.
      if (isUnsettled && c.req.valid("query").returned !== undefined) {
        await reconcileInvoice(ctx, invoice);
        invoice = await getInvoiceByToken(ctx, invoice.token);
        // What the page's frame says is due, and the balance of credits, are of before the payment.
        await noteViewer(c, () => Promise.resolve());
      }
      if (!wantsPage(c)) return c.json(invoice);
      if (c.req.valid("query").returned !== undefined && invoice.status === "paid") {
        const next = await afterPayment(ctx, invoice, c.get("viewer"));
        if (next !== null) {
          say(c, { tone: "good", text: `Paid: ${money(invoice.amountCents, invoice.currency)}. Thank you.` });
          return c.redirect(next, 303);
        }
      }
      const last = isUnsettled ? await lastPayment(ctx, invoice) : null;
      return show(c, <InvoicePage invoice={invoice} lastPayment={last} />);
    },
  )
  .get("/:token/pdf", knownQuery(entryOperations.getInvoicePdf), async (c) => {
    const invoice = await getInvoiceByToken(c.var.ctx, c.req.param("token"));
    return c.body(invoicePdf(invoice, c.var.ctx.payments.name === "test"), 200, {
      "Content-Type": "application/pdf",
      "Content-Disposition": `inline; filename="${invoice.id}.pdf"`,
    });
  })
  .post("/:token/pay", knownQuery(entryOperations.payInvoice), async (c) => {
    const token = c.req.param("token");
    if (!wantsPage(c)) return c.json(await payInvoiceAtOnce(c.var.ctx, token));
    const checkout = await payInvoice(c.var.ctx, token);
    return c.redirect(checkout?.url ?? `/invoice/${token}`, 303);
  });
