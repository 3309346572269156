import type { OwnAccount } from "../../../protocol/api/accounts.ts";
import type { Credits, CreditPackage } from "../../../protocol/api/credits.ts";
import type { Invoice } from "../../../protocol/api/invoices.ts";
import { day } from "../../../protocol/days.ts";
import { invoiceStatuses } from "../../../protocol/states.ts";
import { call } from "../../api/call.ts";
import { listOwnPacks, type OwnPack } from "../../services/packs/list.ts";
import { money } from "../money.ts";
import { Act } from "../kit/form.tsx";
import { allOf, cursorIn, everyTerm } from "../kit/paging.ts";
import { Card, Day, Due, Empty, Head, Heading, Live, Pager, Status, Time } from "../kit/parts.tsx";
import { monthsOf } from "../kit/plans.tsx";
import type { Screen } from "../kit/screen.ts";
import { inOrder, orderIn, SortHead, type Keys } from "../kit/sort.tsx";
import { databaseWords, invoiceWords, siteWords } from "../kit/words.ts";

type Term = OwnAccount["terms"][number];
const keys: Keys<Term> = { name: ({ name }) => name, until: ({ paidUntil }) => paidUntil ?? "" };

const monthsAfter = (term: Term): number => term.nextBillingTerm ?? term.billingTerm;

/** What the next term costs. */
const nextPrice = (term: Term, packs: readonly OwnPack[]) => {
  const pack = packs.find(({ id }) => id === (term.nextPackId ?? term.packId));
  const price = pack?.terms.find(({ months }) => months === monthsAfter(term));
  return pack && price && { amountCents: price.amountCents, currency: pack.currency };
};

const every = (months: number): string => (months === 1 ? "a month" : `every ${months} months`);

const TermRow = ({
  term,
  packs,
  due,
}: {
  term: Term;
  packs: readonly OwnPack[];
  due: Invoice | undefined;
}) => {
  const price = nextPrice(term, packs);
  const priceText = price && `${money(price.amountCents, price.currency)} ${every(monthsAfter(term))}`;
  const pack = packs.find(({ id }) => id === term.packId);
  return (
    <tr>
      <td class="any-break">
        <a href={`/${term.kind}s/${term.id}`}>{term.name}</a>
        <div>
          <Status {...(term.kind === "site" ? siteWords[term.status] : databaseWords[term.status])} />
        </div>
      </td>
      <td>
        {pack?.name}
        {pack?.isOffered === false && <div class="soft small">no longer offered</div>}
        {(term.nextPackId !== null || term.nextBillingTerm !== null) && (
          <div class="soft small">
            then{" "}
            {term.nextPackId !== null &&
              `${packs.find(({ id }) => id === term.nextPackId)?.name ?? "another plan"} `}
            {term.nextBillingTerm !== null && `for ${monthsOf(term.nextBillingTerm)}`}
          </div>
        )}
        {priceText && <div class="soft small narrow-only">{priceText}</div>}
      </td>
      <td class="wide-only">{priceText ?? "—"}</td>
      <td>
        {term.paidUntil === null ? <span class="soft">not paid yet</span> : <Day at={term.paidUntil} />}
      </td>
      <td class="end">
        <div class="buttons">
          {due && (
            <a class="button" href={`/invoice/${due.token}`}>
              {due.kind === "renewal" ? "Renew" : "Pay"} {money(due.amountCents, due.currency)}
            </a>
          )}
          {term.paidUntil !== null && (
            <a class="button" href={`/billing/plan/${term.id}`} aria-label={`Change plan: ${term.name}`}>
              Change plan
            </a>
          )}
        </div>
      </td>
    </tr>
  );
};

/** What is due now, or else what comes next. */
const Next = ({
  terms,
  packs,
  unpaid,
}: {
  terms: readonly Term[];
  packs: readonly OwnPack[];
  unpaid: readonly Invoice[];
}) => {
  const [first] = unpaid.toSorted((one, other) => one.dueAt.localeCompare(other.dueAt));
  const coming = terms
    .flatMap(({ paidUntil, ...term }) => (paidUntil === null ? [] : [{ ...term, paidUntil }]))
    .toSorted((one, other) => one.paidUntil.localeCompare(other.paidUntil));
  const [next] = coming;
  const onThatDay = coming.filter(({ paidUntil }) => next && day(paidUntil) === day(next.paidUntil));
  const prices = onThatDay.map((term) => nextPrice(term, packs));
  const [price] = prices;
  return (
    <div class="body">
      {first ? (
        <>
          <p class="figure">
            {money(
              unpaid.reduce((sum, { amountCents }) => sum + amountCents, 0),
              first.currency,
            )}
          </p>
          <p class="soft">
            {unpaid.length === 1 ? "One invoice is" : `${unpaid.length} invoices are`} unpaid, the first{" "}
            <Due invoice={first} />.
          </p>
          <p class="form-end">
            <a class="button primary" href={`/invoice/${first.token}`}>
              Pay {money(first.amountCents, first.currency)}
            </a>
          </p>
        </>
      ) : next ? (
        <>
          <p class="figure">
            {price && prices.every((one) => one?.currency === price.currency)
              ? money(
                  prices.reduce((sum, one) => sum + (one?.amountCents ?? 0), 0),
                  price.currency,
                )
              : "—"}
          </p>
          <p class="soft">
            Next on <Day at={next.paidUntil} />, for{" "}
            {onThatDay.length > 3
              ? `${onThatDay.length} sites and databases`
              : new Intl.ListFormat("en").format(onThatDay.map(({ name }) => name))}
            . {onThatDay.length > 1 ? "The invoices are" : "The invoice is"} issued a week before.
          </p>
        </>
      ) : (
        <p class="soft">Nothing is due.</p>
      )}
    </div>
  );
};

const Invoices = ({ invoices }: { invoices: readonly Invoice[] }) => (
  <table class="roomy">
    <Head
      columns={[
        "Date",
        ["For", "wide-only"],
        ["Amount", "number"],
        "State",
        [<span class="hidden-text">Actions</span>, "end"],
      ]}
    />
    <tbody>
      {invoices.map((invoice) => {
        const about = `invoice of ${day(invoice.createdAt)}, ${invoice.lines[0]?.description ?? invoice.kind}`;
        return (
          <tr>
            <td>
              <a href={`/invoice/${invoice.token}`} aria-label={`${day(invoice.createdAt)}: ${about}`}>
                <Day at={invoice.createdAt} />
              </a>
              <div class="soft small narrow-only">{invoice.lines[0]?.description ?? invoice.kind}</div>
            </td>
            <td class="wide-only any-break">{invoice.lines[0]?.description ?? invoice.kind}</td>
            <td class="number">{money(invoice.amountCents, invoice.currency)}</td>
            <td>
              <Status {...invoiceWords[invoice.status]} />
              {invoice.status === "unpaid" && (
                <div class="soft small">
                  <Due invoice={invoice} />
                </div>
              )}
            </td>
            <td class="end">
              <div class="buttons">
                {invoice.status === "unpaid" && (
                  <a class="button" href={`/invoice/${invoice.token}`} aria-label={`Pay: ${about}`}>
                    Pay
                  </a>
                )}
                <a href={`/invoice/${invoice.token}/pdf`} aria-label={`PDF: ${about}`}>
                  PDF
                </a>
                {invoice.status === "unpaid" && invoice.kind !== "renewal" && (
                  <details class="menu" id={`more-${invoice.id}`}>
                    <summary class="button" aria-label={`More: ${about}`}>
                      ⋯
                    </summary>
                    <div>
                      <p class="who">
                        {invoice.kind === "site" || invoice.kind === "database"
                          ? `The ${invoice.kind}, which was never paid for, is deleted with it.`
                          : "Nothing will be owed."}
                      </p>
                      <Act
                        id="cancel"
                        of={invoice.id}
                        label="Cancel this invoice"
                        kind="danger"
                        values={{ id: invoice.id }}
                      />
                    </div>
                  </details>
                )}
              </div>
            </td>
          </tr>
        );
      })}
    </tbody>
  </table>
);

const transactionWords: Record<Credits["transactions"][number]["type"], string> = {
  purchase: "Bought",
  chat: "Used by the assistant",
  refund: "Reversed by a refund",
  grant: "Granted by the operator",
};

const credits = (amount: number): string => amount.toLocaleString("en-US", { maximumFractionDigits: 2 });

const CreditsCard = ({ own, packages }: { own: Credits; packages: readonly CreditPackage[] }) => (
  <Card title="Credits" id="credits">
    <div class="body">
      <p class="figure">{credits(own.balance)}</p>
      <p class="soft">For the assistant. They do not expire.</p>
    </div>
    <table>
      {packages.map(({ id, name, credits: count, amountCents, currency }) => (
        <tr>
          <td>
            {name}
            <div class="soft small">{credits(count)} credits</div>
          </td>
          <td class="end">
            <Act
              id="buy"
              of={id}
              label={`Buy for ${money(amountCents, currency)}`}
              about={name}
              values={{ packageId: id }}
            />
          </td>
        </tr>
      ))}
    </table>
    <details class="body" id="transactions">
      <summary>The last transactions</summary>
      {own.transactions.length === 0 ? (
        <p class="soft">None yet.</p>
      ) : (
        <table>
          {own.transactions.map(({ type, amount, createdAt }) => (
            <tr>
              <td>
                {transactionWords[type]}
                <div class="soft small">
                  <Time at={createdAt} />
                </div>
              </td>
              <td class="number">{amount > 0 ? `+${credits(amount)}` : credits(amount)}</td>
            </tr>
          ))}
        </table>
      )}
    </details>
  </Card>
);

const filters = [
  ["", "All"],
  ...invoiceStatuses.map((status) => [status, invoiceWords[status].label]),
] as const;

export const billing: Screen = {
  path: "/billing",
  async show({ ctx, viewer, query }) {
    const status = invoiceStatuses.find((one) => one === query("status"));
    const order = orderIn(query, keys);
    const [packs, unpaid, invoices, own, packages, terms] = await Promise.all([
      listOwnPacks(ctx),
      allOf((page) => call(ctx, "listInvoices", { ...page, status: "unpaid" })),
      call(ctx, "listInvoices", {
        limit: 25,
        ...cursorIn(query, "invoice"),
        ...(status !== undefined && { status }),
      }),
      call(ctx, "getCredits", {}),
      allOf((page) => call(ctx, "listCreditPackages", page)),
      everyTerm(ctx, viewer),
    ]);
    const dueFor = (id: string) =>
      unpaid.find((invoice) => invoice.resource?.id === id && invoice.kind !== "change");
    return {
      title: "Billing",
      section: "billing",
      about: ["account"],
      body: (
        <>
          <Heading title="Billing">
            <a class="button" href="/billing/details">
              Billing details
            </a>
          </Heading>
          <Live id="billing">
            <div class="split">
              <div class="stack">
                <Card title="What you have">
                  {terms.length === 0 ? (
                    <Empty
                      title="Nothing yet"
                      text="Sites and databases are paid for one term at a time, in advance."
                    >
                      <a class="button" href="/sites/new">
                        New site
                      </a>
                      <a class="button" href="/databases/new">
                        New database
                      </a>
                    </Empty>
                  ) : (
                    <table class="roomy">
                      <thead>
                        <tr>
                          <SortHead path="/billing" by="name" label="Name" order={order} />
                          <th scope="col">Plan</th>
                          <th scope="col" class="wide-only">
                            Price
                          </th>
                          <SortHead path="/billing" by="until" label="Paid until" order={order} />
                          <th scope="col" class="end">
                            <span class="hidden-text">Actions</span>
                          </th>
                        </tr>
                      </thead>
                      <tbody>
                        {inOrder(terms, order, keys).map((term) => (
                          <TermRow term={term} packs={packs} due={dueFor(term.id)} />
                        ))}
                      </tbody>
                    </table>
                  )}
                </Card>
                <Card
                  title="Invoices"
                  id="invoices"
                  end={
                    <nav class="row" aria-label="Invoices by state">
                      {filters.map(([value, label]) => (
                        <a
                          href={value === "" ? "/billing#invoices" : `/billing?status=${value}#invoices`}
                          {...(value === (status ?? "") && { "aria-current": "page" as const })}
                        >
                          {label}
                        </a>
                      ))}
                    </nav>
                  }
                >
                  {invoices.data.length === 0 ? (
                    <p class="body soft">
                      {status === undefined
                        ? "There are no invoices yet."
                        : "There are no invoices in this state."}
                    </p>
                  ) : (
                    <Invoices invoices={invoices.data} />
                  )}
                </Card>
                <Pager
                  path={status === undefined ? "/billing" : `/billing?status=${status}`}
                  next={invoices.nextCursor}
                  label="Older invoices"
                />
              </div>
              <div class="stack">
                <Card title={unpaid.length > 0 ? "To pay" : "Next payment"}>
                  <Next terms={terms} packs={packs} unpaid={unpaid} />
                </Card>
                <CreditsCard own={own} packages={packages} />
              </div>
            </div>
          </Live>
        </>
      ),
    };
  },
  forms: {
    async cancel({ ctx }, fields) {
      await call(ctx, "cancelInvoice", { id: fields.text("id") });
      return { to: "/billing", said: "The invoice is cancelled, and nothing is owed for it." };
    },
    async buy({ ctx }, fields) {
      const { invoiceToken } = await call(ctx, "purchaseCredits", { packageId: fields.text("packageId") });
      return { to: `/invoice/${invoiceToken}` };
    },
  },
};
