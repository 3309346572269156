import { Layout } from "../kit/layout.tsx";
import { Callout, Heading } from "../kit/parts.tsx";
import { money } from "../money.ts";

type Shown = { id: string; amountCents: number; currency: string; returnUrl: string; isOpen: boolean };

/** The test processor's payment page. */
export const TestPaymentPage = ({ id, amountCents, currency, returnUrl, isOpen }: Shown) => (
  <Layout title="Test payment" section="billing" crumbs={[{ label: "Billing", href: "/billing" }]}>
    <div class="sheet">
      <Heading title="Test payment" />
      <p>This page stands in for a payment processor's page. No money is charged and no card is needed.</p>
      <table class="lines">
        <tr class="total">
          <td>Amount due</td>
          <td class="number">{money(amountCents, currency)}</td>
        </tr>
      </table>
      {isOpen ? (
        <form method="post" action={`/test-payments/${id}`}>
          <p class="form-end">
            <button class="primary" type="submit">
              Test payment: pay
            </button>
          </p>
        </form>
      ) : (
        <Callout tone="warn">
          <p>This test payment has ended.</p>
        </Callout>
      )}
      <p class="links">
        <a href={returnUrl}>Back to the invoice</a>
      </p>
    </div>
  </Layout>
);
