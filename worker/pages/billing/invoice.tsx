import type { Invoice } from "../../../protocol/api/invoices.ts";
import { Layout } from "../kit/layout.tsx";
import { Callout, Day, Due, Heading, Status } from "../kit/parts.tsx";
import { keepSuspendedDays, stopsAt } from "../../domain/terms.ts";
import type { LastPayment } from "../../services/invoices/get-by-token.ts";
import { invoiceWords } from "../kit/words.ts";
import { money, taxText } from "../money.ts";

const starts = {
  site: "Your site will be built and started as soon as this invoice is paid.",
  database: "Your database will be provisioned as soon as this invoice is paid.",
  credits: "Your credits will be added as soon as this invoice is paid.",
  renewal:
    "Your term continues without interruption once this invoice is paid. Suspended resources restart automatically.",
  change:
    "The larger plan takes effect as soon as this invoice is paid; running containers are restarted with it.",
} as const;

const said = {
  unpaid: null,
  paid: "Thank you. This invoice is paid.",
  void: "This invoice is void: it can no longer be paid, and nothing is owed.",
  refunded: "This invoice was refunded.",
} as const;

const saidOfVoidRenewal =
  "This invoice is void: it can no longer be paid. As long as what it renews exists, another invoice takes its place.";

/** Money for a void invoice, which is returned. */
const saidOfVoid = {
  processing:
    "This invoice is void, but a payment of it is still being processed by the bank. If it arrives, the operator is told and will return it.",
  "to return":
    "A payment was received although this invoice was void. The operator has been told and will return it.",
} as const;

/** Where the payer goes on: to what the invoice pays for. */
function nextOf({ kind, resource }: Invoice): [href: string, label: string] {
  const id = resource?.id ?? "";
  if (kind === "credits") return ["/billing", "Go to your credits"];
  if (id.startsWith("site_"))
    return kind === "site"
      ? [`/sites/${id}/newest-deployment`, "Watch it being built"]
      : [`/sites/${id}`, "Go to the site"];
  if (id.startsWith("db_")) return [`/databases/${id}`, "Go to the database"];
  return ["/", "Go to the dashboard"];
}

/** The token in the URL is the credential, so that anyone can pay without an account. */
export const InvoicePage = ({ invoice, lastPayment }: { invoice: Invoice; lastPayment: LastPayment }) => {
  const isOnItsWay = lastPayment === "processing";
  const [href, label] = nextOf(invoice);
  const isDone = invoice.status !== "unpaid";
  const isReturned = invoice.status === "void" && (isOnItsWay || lastPayment === "to return");
  const isVoidRenewal = invoice.status === "void" && invoice.kind === "renewal";
  const text = isReturned
    ? saidOfVoid[lastPayment]
    : isVoidRenewal
      ? saidOfVoidRenewal
      : said[invoice.status];
  return (
    <Layout
      title="Invoice"
      section="billing"
      crumbs={[{ label: "Billing", href: "/billing" }]}
      about={invoice.resource ? [invoice.resource.id, invoice.id] : [invoice.id]}
    >
      <div class="sheet" id="invoice" data-live="">
        <Heading
          title={invoice.number === null ? "Invoice" : `Invoice ${invoice.number}`}
          status={<Status {...invoiceWords[invoice.status]} />}
          below={
            invoice.status === "paid" && invoice.paidAt ? (
              <>
                paid on <Day at={invoice.paidAt} />
              </>
            ) : (
              <>
                of <Day at={invoice.createdAt} />
                {!isDone && (
                  <>
                    , <Due invoice={invoice} />
                  </>
                )}
              </>
            )
          }
        />
        <table class="lines">
          {invoice.lines.map((line) => (
            <tr>
              <td class="any-break">{line.description}</td>
              <td class="number">{money(line.amountCents, invoice.currency)}</td>
            </tr>
          ))}
          <tr class="total">
            <td>Total</td>
            <td class="number">{money(invoice.amountCents, invoice.currency)}</td>
          </tr>
          {invoice.tax && (
            <tr class="soft">
              <td>{taxText(invoice.tax)}</td>
              <td class="number">{money(invoice.tax.amountCents, invoice.currency)}</td>
            </tr>
          )}
        </table>
        {!isDone && isOnItsWay && (
          <Callout tone="busy">
            <p role="status">
              Your payment is being processed. Some banks take several days to confirm a payment; this page
              shows the result.
            </p>
          </Callout>
        )}
        {!isDone && lastPayment === "failed" && (
          <Callout tone="bad">
            <p role="alert">
              The last payment was refused, and this invoice is still unpaid. Try again, perhaps with another
              method; your bank can say why it refused.
            </p>
          </Callout>
        )}
        {!isDone && !isOnItsWay && (
          <form class="screen-only" method="post" action={`/invoice/${invoice.token}/pay`}>
            <p>{starts[invoice.kind]}</p>
            {invoice.kind === "renewal" && (
              <p>
                Without payment, what it renews is stopped on{" "}
                <Day at={stopsAt(new Date(invoice.dueAt), new Date(invoice.createdAt)).toISOString()} />, and
                deleted with its data {keepSuspendedDays} days later.
              </p>
            )}
            <p class="form-end">
              <button
                class="primary"
                type="submit"
              >{`Pay ${money(invoice.amountCents, invoice.currency)}`}</button>
            </p>
          </form>
        )}
        {text !== null && <p>{text}</p>}
        {invoice.status === "paid" && (
          <p class="form-end screen-only">
            <a class="button primary" href={href}>
              {label}
            </a>
          </p>
        )}
        <dl class="small soft">
          <dt>Number</dt>
          <dd>{invoice.number ?? "assigned at payment"}</dd>
          <dt>Reference</dt>
          <dd>{invoice.id}</dd>
        </dl>
        <p class="links screen-only">
          <a href={`/invoice/${invoice.token}/pdf`}>Download as PDF</a>
          {!isDone && invoice.resource && <a href={href}>Pay later</a>}
        </p>
      </div>
    </Layout>
  );
};
