import type { Invoice } from "../../protocol/api/invoices.ts";
import { Layout } from "./kit/layout.tsx";
import { day, money } from "./money.ts";

const badges = {
  unpaid: <span class="badge warn">Unpaid</span>,
  paid: <span class="badge good">Paid</span>,
  void: <span class="badge">Void</span>,
  refunded: <span class="badge">Refunded</span>,
} as const;

const starts = {
  site: "Your site will be built and started as soon as this invoice is paid.",
  database: "Your database will be provisioned as soon as this invoice is paid.",
  credits: "Your credits will be added as soon as this invoice is paid.",
  renewal:
    "Your term continues without interruption once this invoice is paid. Suspended resources restart automatically.",
  change:
    "The larger pack takes effect as soon as this invoice is paid; running containers are restarted with it.",
} as const;

const said = {
  unpaid: null,
  paid: "Thank you. Your order is being processed.",
  void: "This invoice is void: it can no longer be paid, and nothing is owed.",
  refunded: "This invoice was refunded.",
} as const;

/** The token in the URL is the credential, so that anyone can pay without an account. */
export const InvoicePage = ({ invoice, isOnItsWay }: { invoice: Invoice; isOnItsWay: boolean }) => (
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
    {invoice.status === "unpaid" && isOnItsWay && (
      <p class="note" role="status">
        Your payment is being processed. Some banks take several days to confirm a payment; this page shows
        the result.
      </p>
    )}
    {invoice.status === "unpaid" && !isOnItsWay && (
      <form class="screen-only" method="post" action={`/invoice/${invoice.token}/pay`}>
        <p>{starts[invoice.kind]}</p>
        <button type="submit">{`Pay ${money(invoice.amountCents, invoice.currency)}`}</button>
      </form>
    )}
    {said[invoice.status] !== null && <p>{said[invoice.status]}</p>}
    {invoice.status === "paid" && invoice.resource?.id.startsWith("site_") && (
      <p class="links screen-only">
        <a href={`/sites/${invoice.resource.id}`}>Go to the site</a>
      </p>
    )}
    {invoice.status === "paid" && !invoice.resource?.id.startsWith("site_") && (
      <p class="links screen-only">
        <a href="/">Go to the dashboard</a>
      </p>
    )}
    <dl>
      <dt>Invoice</dt>
      <dd>{invoice.id}</dd>
      <dt>Date</dt>
      <dd>{day(invoice.createdAt)}</dd>
    </dl>
    <p class="links screen-only">
      <a href={`/invoice/${invoice.token}/pdf`}>Download as PDF</a>
    </p>
  </Layout>
);
