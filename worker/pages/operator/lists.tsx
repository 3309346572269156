import {
  AllDatabasesQuery,
  AllInvoicesQuery,
  AllSitesQuery,
  JobsQuery,
  type DatabaseForOperator,
  type Job,
} from "../../../protocol/api/console.ts";
import type { FailingBackups as Failing } from "../../../protocol/api/backups.ts";
import { FlagResolve } from "../../../protocol/api/payments.ts";
import { call } from "../../api/call.ts";
import { parsed } from "../../domain/parsed.ts";
import { Act, Button, Field, Form } from "../kit/form.tsx";
import { allOf, cursorIn } from "../kit/paging.ts";
import { Card, Day, Empty, Head, Pager, Status, Time } from "../kit/parts.tsx";
import { Ranges } from "../kit/ranges.tsx";
import type { Asked, Screen, View } from "../kit/screen.ts";
import { databaseWords, invoiceWords, siteWords, type Word } from "../kit/words.ts";
import { money } from "../money.ts";
import { headlineOf } from "../sites/failure.tsx";
import { operatorFrame, Search, searched } from "./frame.tsx";
import { flagWords, goneOf, jobText, jobWords } from "./words.ts";

const Owner = ({ id, email }: { id: string; email: string }) => (
  <a href={`/operator/accounts/${id}`}>{email}</a>
);

/** Databases and volumes whose scheduled backups fail, whoever they are of. */
const FailingBackups = ({ failing }: { failing: readonly Failing[] }) => (
  <Card title="Backups that fail" id="failing" tone="fail">
    <table class="roomy">
      <Head columns={["Of", "First failed", "Why"]} />
      <tbody>
        {failing.map(({ id, accountId, type, since, times, reason }) => (
          <tr>
            <td class="any-break">
              <code>{id}</code>
              <div class="small">
                {type === "volume" ? "A volume" : "A database"} of{" "}
                <a href={`/operator/accounts/${accountId}`}>this account</a>
              </div>
            </td>
            <td>
              <Time at={since} />
              <div class="soft small">{times === 1 ? "once" : `${times} times`}</div>
            </td>
            <td class="any-break">{reason}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </Card>
);

const LastBackup = ({ database }: { database: DatabaseForOperator }) => (
  <td>
    {database.lastVerifiedBackupAt === null ? (
      <span class={database.status === "RUNNING" ? "warn" : "soft"}>none verified</span>
    ) : (
      <Time at={database.lastVerifiedBackupAt} />
    )}
    {database.backupsFailingSince !== null && (
      <div class="bad small">
        began to fail <Time at={database.backupsFailingSince} />
      </div>
    )}
  </td>
);

/** All sites, or all databases (`?kind=databases`). */
export const operatorSites: Screen = {
  path: "/operator/sites",
  async show({ ctx, query }) {
    const [search, kind] = [query("search") ?? "", query("kind") === "databases" ? "databases" : "sites"];
    const [host, account] = [query("host") ?? "", query("account") ?? ""];
    const asked = {
      limit: "50",
      ...cursorIn(query, kind === "sites" ? "site" : "database"),
      ...(search !== "" && { search }),
      ...(host !== "" && { hostId: host }),
      ...(account !== "" && { accountId: account }),
    };
    const found =
      kind === "sites"
        ? await call(ctx, "listAllSites", parsed(AllSitesQuery, asked)).then(({ data, nextCursor }) => ({
            nextCursor,
            rows: data.map((site) => ({ ...site, word: siteWords[site.status], database: null })),
          }))
        : await call(ctx, "listAllDatabases", parsed(AllDatabasesQuery, asked)).then(
            ({ data, nextCursor }) => ({
              nextCursor,
              rows: data.map((database) => ({
                ...database,
                word: databaseWords[database.status],
                database,
              })),
            }),
          );
    const isWhole = search === "" && host === "" && account === "" && query("cursor") === undefined;
    const failing =
      kind === "databases" && isWhole ? await allOf((page) => call(ctx, "listFailingBackups", page)) : [];
    return operatorFrame(
      "/operator/sites",
      <>
        <Search label="Name, address or id" value={search}>
          <label class="hidden-text" for="kind">
            Kind
          </label>
          <select id="kind" name="kind">
            <option value="sites">Sites</option>
            <option value="databases" selected={kind === "databases"}>
              Databases
            </option>
          </select>
          {host !== "" && <input type="hidden" name="host" value={host} />}
          {account !== "" && <input type="hidden" name="account" value={account} />}
        </Search>
        {host !== "" && (
          <p class="soft">
            Only those on the host {found.rows[0]?.hostName ?? host}.{" "}
            <a href={searched("/operator/sites", { search, kind, account })}>Show those of all hosts</a>
          </p>
        )}
        {account !== "" && (
          <p class="soft">
            Only those of the account <Owner id={account} email={found.rows[0]?.accountEmail ?? account} />.{" "}
            <a href={searched("/operator/sites", { search, kind, host })}>Show those of all accounts</a>
          </p>
        )}
        {failing.length > 0 && <FailingBackups failing={failing} />}
        <Card>
          {found.rows.length === 0 ? (
            <Empty title="Nothing found" text="Nothing has this name, address or id." />
          ) : (
            <table class="roomy">
              <Head
                columns={[
                  "Name",
                  "State",
                  "Account",
                  ...(kind === "databases" ? ["Last verified backup"] : []),
                  ["Host", "wide-only"],
                ]}
              />
              <tbody>
                {found.rows.map(
                  ({ name, word, error, accountId, accountEmail, hostName, hostOffline, database }) => (
                    <tr>
                      <td class="any-break">{name}</td>
                      <td>
                        <Status {...word} />
                        {error !== null && (
                          <div class="bad small any-break">{headlineOf(error).headline}</div>
                        )}
                      </td>
                      <td class="any-break">
                        <Owner id={accountId} email={accountEmail} />
                      </td>
                      {database && <LastBackup database={database} />}
                      <td class="wide-only soft">
                        {hostName ?? "none"} {hostOffline && <span class="bad">not connected</span>}
                      </td>
                    </tr>
                  ),
                )}
              </tbody>
            </table>
          )}
        </Card>
        <Pager
          path={searched("/operator/sites", { search, kind, host, account })}
          next={found.nextCursor}
          label="More"
        />
      </>,
    );
  },
};

const jobWord = ({ status, stuck }: Job): Word =>
  stuck
    ? { tone: "bad", label: "Stuck" }
    : status === "QUEUED"
      ? { tone: "warn", label: "Waiting" }
      : status === "LEASED"
        ? { tone: "busy", label: "Running" }
        : status === "DONE"
          ? { tone: "good", label: "Done" }
          : {
              tone: status === "FAILED" ? "bad" : "soft",
              label: status === "FAILED" ? "Failed" : "Cancelled",
            };

const states = [
  ["", "Waiting and running"],
  ["stuck", "Stuck"],
  ["ended", "Ended"],
] as const;

export const operatorQueue: Screen = {
  path: "/operator/queue",
  async show({ ctx, query }) {
    const state = query("state") ?? "";
    const asked = parsed(JobsQuery, {
      limit: "50",
      ...cursorIn(query, "job"),
      ...(state !== "" && { state }),
    });
    const { data, nextCursor } = await call(ctx, "listJobs", asked);
    return operatorFrame(
      "/operator/queue",
      <>
        <Card
          id="queue"
          live
          title="Work for hosts"
          end={<Ranges path="/operator/queue" name="state" current={state} options={states} />}
        >
          {data.length === 0 ? (
            <Empty
              title={state === "" ? "The queue is empty" : "None"}
              text="Deployments, backups and other work for hosts are listed here until done."
            />
          ) : (
            <table class="roomy">
              {data.map((job) => (
                <tr>
                  <td>
                    <Status {...jobWord(job)} />
                  </td>
                  <td class="any-break">
                    {jobWords[job.kind]} {job.name === null ? goneOf(job) : <b>{job.name}</b>}
                    {job.cancelRequested && job.finishedAt === null && (
                      <span class="warn small"> – to be cancelled</span>
                    )}
                    <div class="soft small">
                      {job.waitsFor?.reason ?? (job.error === null ? "" : headlineOf(job.error).headline)}
                    </div>
                  </td>
                  <td class="any-break">
                    <Owner id={job.accountId} email={job.accountEmail} />
                  </td>
                  <td class="wide-only soft one-row">{job.hostName ?? "any host"}</td>
                  <td class="end soft">
                    <Time at={job.createdAt} />
                    {job.cancellable && !job.cancelRequested && (
                      <Act
                        id="cancel"
                        of={job.id}
                        label="Cancel"
                        about={jobText(job)}
                        values={{ id: job.id }}
                      />
                    )}
                    {job.retryable && (
                      <Act
                        id="retry"
                        of={job.id}
                        label="Try again"
                        about={jobText(job)}
                        values={{ id: job.id }}
                      />
                    )}
                  </td>
                </tr>
              ))}
            </table>
          )}
        </Card>
        <Pager path={searched("/operator/queue", { state })} next={nextCursor} label="Older" />
      </>,
    );
  },
  forms: {
    async cancel({ ctx }, fields) {
      await call(ctx, "cancelJob", { id: fields.text("id") });
      return {
        to: "/operator/queue",
        said: "The job is cancelled, or will be as soon as its host hears of it.",
      };
    },
    async retry({ ctx }, fields) {
      const job = await call(ctx, "retryJob", { id: fields.text("id") });
      return { to: "/operator/queue", said: `Requested again: ${jobText(job)}.` };
    },
  },
};

async function moneyPage({ ctx, query }: Asked, problems: readonly string[] = []): Promise<View> {
  const [search, status] = [query("search") ?? "", query("status") ?? ""];
  const asked = parsed(AllInvoicesQuery, {
    limit: "50",
    ...cursorIn(query, "invoice"),
    ...(search !== "" && { search }),
    ...(status !== "" && { status }),
  });
  const [{ data, nextCursor }, open] = await Promise.all([
    call(ctx, "listAllInvoices", asked),
    allOf((page) => call(ctx, "listPaymentFlags", { ...page, resolved: "0" })),
  ]);
  return operatorFrame(
    "/operator/money",
    <>
      {open.length > 0 && (
        <Card title="Payment events that need attention" tone="fail">
          <table>
            {open.map((flag) => (
              <tr>
                <td>
                  {flagWords[flag.reason]}
                  <div class="soft small">
                    {flag.amountCents !== null && flag.currency !== null && (
                      <>{money(flag.amountCents, flag.currency)} · </>
                    )}
                    {flag.invoiceId !== null && (
                      <>
                        <a href={searched("/operator/money", { search: flag.invoiceId })}>Its invoice</a>{" "}
                        ·{" "}
                      </>
                    )}
                    <code>{flag.reference}</code> · <Time at={flag.createdAt} />
                  </div>
                </td>
                <td>
                  <Form id="resolve" of={flag.id}>
                    <input type="hidden" name="id" value={flag.id} />
                    <Field name="resolution" prose label="What was done" required maxlength={500} />
                    <Button label="Resolve" />
                  </Form>
                </td>
              </tr>
            ))}
          </table>
        </Card>
      )}
      <Search label="Number, id, resource or email" value={search}>
        <label class="hidden-text" for="status">
          State
        </label>
        <select id="status" name="status">
          <option value="">All states</option>
          {Object.entries(invoiceWords).map(([value, { label }]) => (
            <option value={value} selected={value === status}>
              {label}
            </option>
          ))}
        </select>
      </Search>
      {problems.length > 0 && (
        <Card title={<span class="bad">The ledger is not consistent</span>} tone="fail" id="ledger">
          <div class="body">
            <p>
              Balances, invoices and payments disagree. Nothing is changed by this check. Keep the text, stop
              refunds, and compare it with the payment processor.
            </p>
            <ul>
              {problems.map((problem) => (
                <li>{problem}</li>
              ))}
            </ul>
          </div>
        </Card>
      )}
      <Card title="Invoices" end={<Act id="verify" label="Check the ledger" />}>
        <table class="roomy">
          {data.map((invoice) => (
            <tr>
              <td class="any-break">
                <a href={`/invoice/${invoice.token}`}>{invoice.lines[0]?.description ?? invoice.kind}</a>
              </td>
              <td>
                <Status {...invoiceWords[invoice.status]} />
              </td>
              <td class="any-break">
                <Owner id={invoice.accountId} email={invoice.accountEmail} />
              </td>
              <td class="number">{money(invoice.amountCents, invoice.currency)}</td>
              <td class="end soft wide-only">
                <Day at={invoice.createdAt} />
              </td>
              <td class="end">
                {invoice.status === "paid" && (
                  <a
                    href={`/operator/money/${invoice.id}/refund`}
                    aria-label={`Refund: ${invoice.lines[0]?.description ?? invoice.kind}`}
                  >
                    Refund
                  </a>
                )}
                {invoice.status === "unpaid" && (
                  <details class="menu" id={`void-${invoice.id}`}>
                    <summary
                      class="button"
                      aria-label={`Void …: ${invoice.lines[0]?.description ?? invoice.kind}`}
                    >
                      Void …
                    </summary>
                    <div class="wide-menu">
                      <p>
                        It can no longer be paid
                        {invoice.kind === "renewal"
                          ? ". Another renewal is issued within a minute, at the price and with the billing details of today, as long as what it renews exists."
                          : ", and nothing is owed."}
                        {(invoice.kind === "site" || invoice.kind === "database") &&
                          " What it orders was never paid for, and is deleted with it."}
                      </p>
                      <Act
                        id="void"
                        of={invoice.id}
                        label="Void the invoice"
                        kind="danger primary"
                        values={{ id: invoice.id }}
                      />
                    </div>
                  </details>
                )}
              </td>
            </tr>
          ))}
        </table>
        {data.length === 0 && <p class="body soft">None.</p>}
      </Card>
      <Pager
        path={searched("/operator/money", { search, status })}
        next={nextCursor}
        label="Older invoices"
      />
    </>,
  );
}

export const operatorMoney: Screen = {
  path: "/operator/money",
  show: (asked) => moneyPage(asked),
  forms: {
    async resolve({ ctx }, fields) {
      await call(ctx, "resolvePaymentFlag", {
        id: fields.text("id"),
        ...parsed(FlagResolve, { resolution: fields.text("resolution") }),
      });
      return { to: "/operator/money", said: "The event is resolved." };
    },
    async verify(asked) {
      const { ok, transfers, accounts, problems } = await call(asked.ctx, "verifyLedger", {});
      return ok
        ? {
            to: "/operator/money",
            said: `The ledger is consistent: ${transfers} transfers in ${accounts} accounts agree with balances, invoices and payments.`,
          }
        : { again: await moneyPage(asked, problems) };
    },
    async void({ ctx }, fields) {
      await call(ctx, "voidInvoice", { id: fields.text("id") });
      return { to: "/operator/money", said: "The invoice is void." };
    },
  },
};
