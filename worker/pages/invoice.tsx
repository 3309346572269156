import type { Invoice } from "../../protocol/api/invoices.ts";
import { Layout } from "./layout.tsx";

const money = (cents: number, currency: string) =>
  new Intl.NumberFormat("en-US", { style: "currency", currency }).format(cents / 100);
const day = (iso: string) => iso.slice(0, 10);

const badges = {
  unpaid: <span class="badge warn">Unpaid</span>,
  paid: <span class="badge good">Paid</span>,
  void: <span class="badge">Void</span>,
  refunded: <span class="badge">Refunded</span>,
} as const;

const starts = {
  site: "Your site is built and started as soon as this is paid.",
  database: "Your database is provisioned as soon as this is paid.",
  credits: "Your credits are added as soon as this is paid.",
  renewal: "Your term goes on without a break when this is paid.",
} as const;

/** Opened by its token alone, so that whoever pays needs no account. */
export const InvoicePage = ({ invoice }: { invoice: Invoice }) => (
  <Layout title="Invoice">
    <h1>Invoice</h1>
    <p>
      {badges[invoice.status]}{" "}
      {invoice.status === "paid" && invoice.paidAt
        ? `on ${day(invoice.paidAt)}`
        : `due ${day(invoice.dueAt)}`}
    </p>
    <table>
      {invoice.lines.map((line) => (
        <tr>
          <td>{line.description}</td>
          <td>{money(line.amountCents, invoice.currency)}</td>
        </tr>
      ))}
      <tr class="total">
        <td>Total</td>
        <td>{money(invoice.amountCents, invoice.currency)}</td>
      </tr>
    </table>
    {invoice.status === "unpaid" && (
      <>
        <p>{starts[invoice.kind]}</p>
        <form method="post" action={`/invoice/${invoice.token}/pay`}>
          <button type="submit">{`Pay ${money(invoice.amountCents, invoice.currency)}`}</button>
        </form>
        <p class="note">Test payments: this installation uses the embedded test processor. No money moves.</p>
      </>
    )}
    {invoice.status === "paid" && <p>Thank you. What you ordered is on its way.</p>}
    <p class="note">{invoice.id}</p>
  </Layout>
);
