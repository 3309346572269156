import { Layout } from "./layout.tsx";
import { money } from "./money.ts";

type Shown = { id: string; amountCents: number; currency: string; returnUrl: string; isOpen: boolean };

/** The test processor's page. */
export const TestPaymentPage = ({ id, amountCents, currency, returnUrl, isOpen }: Shown) => (
  <Layout title="Test payment">
    <h1>Test payment</h1>
    <p>This page stands where a payment processor's would be. It takes no money and asks for no card.</p>
    <table>
      <tr class="total">
        <td>To pay</td>
        <td>{money(amountCents, currency)}</td>
      </tr>
    </table>
    {isOpen ? (
      <form method="post" action={`/test-payments/${id}`}>
        <button type="submit">Test payment: pay</button>
      </form>
    ) : (
      <p class="note">This test payment is over.</p>
    )}
    <p class="links">
      <a href={returnUrl}>Back to the invoice</a>
    </p>
  </Layout>
);
