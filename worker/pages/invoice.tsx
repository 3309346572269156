import type { Invoice } from "../../protocol/api/invoices.ts";
import { Layout } from "./layout.tsx";
import { day, money } from "./money.ts";

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
  renewal: "Your term goes on without a break when this is paid. What is suspended starts again by itself.",
  change: "The larger pack is yours as soon as this is paid: what runs is restarted with it.",
} as const;

const said = {
  unpaid: null,
  paid: "Thank you. What you ordered is on its way.",
  void: "This invoice is void: it can no longer be paid, and nothing is owed.",
  refunded: "The money of this invoice was given back.",
} as const;

/** Opened by its token alone, so that whoever pays needs no account. */
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
        Your payment is on its way. Some banks take days to confirm one; this page shows it when they have.
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
        <a href={`/sites/${invoice.resource.id}`}>To the site</a>
      </p>
    )}
    {invoice.status === "paid" && !invoice.resource?.id.startsWith("site_") && (
      <p class="links screen-only">
        <a href="/">To the dashboard</a>
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
