import { Hono } from "hono";
import type { AppEnv } from "../app-env.ts";
import { actAs } from "../middleware/context.ts";
import { limitAddress } from "../middleware/limit.ts";
import { show } from "./show.ts";
import { noteViewer } from "./viewer.ts";
import { TestPaymentPage } from "../pages/billing/test-payment.tsx";
import { getTestPayment, payTestPayment } from "../services/payments/test-payment.ts";

/** The embedded test processor's own pages. The URL is the credential, as for a real processor's checkout. */
export const testPayments = new Hono<AppEnv>()
  .use(limitAddress, actAs("link"))
  .get("/:id", noteViewer, async (c) => {
    const shown = await getTestPayment(c.var.ctx, c.req.param("id"));
    return show(c, <TestPaymentPage {...shown} />);
  })
  .post("/:id", async (c) => {
    const { returnUrl } = await payTestPayment(c.var.ctx, c.req.param("id"));
    return c.redirect(`${returnUrl}?returned=1`, 303);
  });
