import { Layout } from "./kit/layout.tsx";
import { money } from "./money.ts";

type Shown = { id: string; amountCents: number; currency: string; returnUrl: string; isOpen: boolean };

/** The test processor's payment page. */
export const TestPaymentPage = ({ id, amountCents, currency, returnUrl, isOpen }: Shown) => (
  <Layout title="Test payment">
    <h1>Test payment</h1>
    <p>This page takes the place of a payment processor's page. No money is charged and no card is needed.</p>
    <table>
      <tr class="total">
        <td>Amount due</td>
        <td>{money(amountCents, currency)}</td>
      </tr>
    </table>
    {isOpen ? (
      <form method="post" action={`/test-payments/${id}`}>
        <button type="submit">Test payment: pay</button>
      </form>
    ) : (
      <p class="note">This test payment has ended.</p>
    )}
    <p class="links">
      <a href={returnUrl}>Back to the invoice</a>
    </p>
  </Layout>
);
