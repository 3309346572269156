import {
  AllDatabasesQuery,
  AllInvoicesQuery,
  AllSitesQuery,
  JobsQuery,
  type Job,
} from "../../../protocol/api/console.ts";
import { FlagResolve } from "../../../protocol/api/payments.ts";
import { call } from "../../api/call.ts";
import { parsed } from "../../domain/parsed.ts";
import { Act, Button, Field, Form } from "../kit/form.tsx";
import { cursorIn } from "../kit/paging.ts";
import { Card, Day, Empty, Pager, Status, Time } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { databaseWords, invoiceWords, siteWords, type Word } from "../kit/words.ts";
import { money } from "../money.ts";
import { operatorFrame, Search } from "./frame.tsx";

const Owner = ({ id, email }: { id: string; email: string }) => (
  <a href={`/operator/accounts/${id}`}>{email}</a>
);
const searched = (path: string, given: Record<string, string>): string => {
  const query = new URLSearchParams(Object.entries(given).filter(([, value]) => value !== "")).toString();
  return query === "" ? path : `${path}?${query}`;
};

/** All sites, or all databases (`?kind=databases`). */
export const operatorSites: Screen = {
  path: "/operator/sites",
  async show({ ctx, query }) {
    const [search, kind] = [query("search") ?? "", query("kind") === "databases" ? "databases" : "sites"];
    const asked = {
      limit: "50",
      ...cursorIn(query, kind === "sites" ? "site" : "database"),
      ...(search !== "" && { search }),
    };
    const found =
      kind === "sites"
        ? await call(ctx, "listAllSites", parsed(AllSitesQuery, asked)).then(({ data, nextCursor }) => ({
            nextCursor,
            rows: data.map((site) => ({ ...site, word: siteWords[site.status] })),
          }))
        : await call(ctx, "listAllDatabases", parsed(AllDatabasesQuery, asked)).then(
            ({ data, nextCursor }) => ({
              nextCursor,
              rows: data.map((database) => ({ ...database, word: databaseWords[database.status] })),
            }),
          );
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
        </Search>
        <Card>
          {found.rows.length === 0 ? (
            <Empty title="Nothing found" text="Nothing has this name, address or id." />
          ) : (
            <table>
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">State</th>
                  <th scope="col">Account</th>
                  <th scope="col" class="wide-only">
                    Host
                  </th>
                </tr>
              </thead>
              <tbody>
                {found.rows.map(({ name, word, error, accountId, accountEmail, hostName, hostOffline }) => (
                  <tr>
                    <td>{name}</td>
                    <td>
                      <Status {...word} />
                      {error !== null && <div class="bad small">{error}</div>}
                    </td>
                    <td>
                      <Owner id={accountId} email={accountEmail} />
                    </td>
                    <td class="wide-only soft">
                      {hostName ?? "none"} {hostOffline && <span class="bad">not connected</span>}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </Card>
        <Pager path={searched("/operator/sites", { search, kind })} next={found.nextCursor} label="More" />
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
        <p class="links">
          {states.map(([value, label]) => (
            <a
              href={searched("/operator/queue", { state: value })}
              {...(value === state && { "aria-current": "true" as const })}
            >
              {label}
            </a>
          ))}
        </p>
        <Card id="queue" live>
          {data.length === 0 ? (
            <Empty
              title="The queue is empty"
              text="Deployments, backups and other work for hosts stands here until it is done."
            />
          ) : (
            <table>
              {data.map((job) => (
                <tr>
                  <td>
                    <Status {...jobWord(job)} />
                  </td>
                  <td>
                    {job.kind} <b>{job.name ?? ""}</b>
                    <div class="soft small">{job.waitsFor?.reason ?? job.error ?? ""}</div>
                  </td>
                  <td>
                    <Owner id={job.accountId} email={job.accountEmail} />
                  </td>
                  <td class="wide-only soft">{job.hostName ?? "any host"}</td>
                  <td class="end soft">
                    <Time at={job.createdAt} />
                    {job.cancellable && !job.cancelRequested && (
                      <Act
                        id="cancel"
                        of={job.id}
                        label="Cancel"
                        about={`${job.kind} ${job.name ?? ""}`}
                        values={{ id: job.id }}
                      />
                    )}
                    {job.retryable && (
                      <Act
                        id="retry"
                        of={job.id}
                        label="Try again"
                        about={`${job.kind} ${job.name ?? ""}`}
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
      const { kind, name } = await call(ctx, "retryJob", { id: fields.text("id") });
      return { to: "/operator/queue", said: `Asked for again: ${kind} ${name ?? ""}`.trim() };
    },
  },
};

export const operatorMoney: Screen = {
  path: "/operator/money",
  async show({ ctx, query }) {
    const [search, status] = [query("search") ?? "", query("status") ?? ""];
    const asked = parsed(AllInvoicesQuery, {
      limit: "50",
      ...cursorIn(query, "invoice"),
      ...(search !== "" && { search }),
      ...(status !== "" && { status }),
    });
    const [{ data, nextCursor }, flags] = await Promise.all([
      call(ctx, "listAllInvoices", asked),
      call(ctx, "listPaymentFlags", { limit: 20, resolved: "0" }),
    ]);
    const open = flags.data;
    return operatorFrame(
      "/operator/money",
      <>
        {open.length > 0 && (
          <Card title="Payment events that need you" tone="fail">
            <table>
              {open.map((flag) => (
                <tr>
                  <td>
                    {flag.reason}
                    <div class="soft small">
                      <Time at={flag.createdAt} />
                    </div>
                  </td>
                  <td>
                    <Form id="resolve" of={flag.id}>
                      <input type="hidden" name="id" value={flag.id} />
                      <Field name="resolution" label="What was done" required maxlength={500} />
                      <Button label="Resolve" />
                    </Form>
                  </td>
                </tr>
              ))}
            </table>
          </Card>
        )}
        <Search label="Invoice, resource or email" value={search}>
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
        <Card title="Invoices" end={<Act id="verify" label="Check the ledger" />}>
          <table>
            {data.map((invoice) => (
              <tr>
                <td>
                  <a href={`/invoice/${invoice.token}`}>{invoice.lines[0]?.description ?? invoice.kind}</a>
                </td>
                <td>
                  <Status {...invoiceWords[invoice.status]} />
                </td>
                <td>
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
  },
  forms: {
    async resolve({ ctx }, fields) {
      await call(ctx, "resolvePaymentFlag", {
        id: fields.text("id"),
        ...parsed(FlagResolve, { resolution: fields.text("resolution") }),
      });
      return { to: "/operator/money", said: "The event is resolved." };
    },
    async verify({ ctx }) {
      const { ok } = await call(ctx, "verifyLedger", {});
      return ok
        ? { to: "/operator/money", said: "The ledger is consistent." }
        : {
            to: "/operator/money",
            said: "The ledger is not consistent: call GET /ledger/verify for the accounts concerned.",
            tone: "bad",
          };
    },
  },
};

export const operatorSystem: Screen = {
  path: "/operator/system",
  async show({ ctx }) {
    const system = await call(ctx, "getSystem", {});
    return operatorFrame(
      "/operator/system",
      <div class="split">
        <Card title="Set-up">
          <table>
            {system.setup.map(({ title, done, required, todo }) => (
              <tr>
                <td>
                  <Status
                    {...(done
                      ? { tone: "good", label: "Done" }
                      : required
                        ? { tone: "bad", label: "Needed" }
                        : { tone: "warn", label: "Open" })}
                  />
                </td>
                <td>
                  <b>{title}</b>
                  {todo !== null && <div class="soft">{todo}</div>}
                </td>
              </tr>
            ))}
          </table>
        </Card>
        <div class="stack">
          <Card title="Installation">
            <dl>
              <dt>Version</dt>
              <dd>{system.version}</dd>
              <dt>Address</dt>
              <dd>{system.siteUrl}</dd>
              <dt>Sites</dt>
              <dd>{system.sitesOrigin}</dd>
              <dt>Sign-up</dt>
              <dd>{system.signUp === "open" ? "open to everybody" : "closed"}</dd>
              <dt>Payments</dt>
              <dd>
                {system.payments.processor === "stripe"
                  ? `Stripe${system.payments.live ? "" : ", test mode"}`
                  : "the embedded test processor"}
              </dd>
              <dt>Assistant</dt>
              <dd>{system.assistant.model ?? "no model: it takes commands"}</dd>
              <dt>Backups</dt>
              <dd>{system.backupStore.error ?? "the store answers"}</dd>
            </dl>
          </Card>
          <Card title="Payments">
            <div class="body">
              <p class="soft">
                {system.payments.processor === "stripe"
                  ? "Asks Stripe whether it knows the key, and the webhook that tells of payments."
                  : "The embedded test processor needs no set-up, and moves no money."}
              </p>
              <p class="form-end">
                <Act id="payments" label="Check the payments" />
              </p>
            </div>
          </Card>
          <Card title="Mail">
            <div class="body">
              <p class="soft">
                {system.mail.from === null ? "No mail service is set up." : `Sent as ${system.mail.from}.`}
              </p>
              <p class="form-end">
                <Act id="mail" label="Send me a test" />
              </p>
            </div>
          </Card>
          <Card title="Secrets">
            <div class="body">
              <p>
                Under key <code>{system.secrets.keyId}</code>.{" "}
                {system.secrets.underOldKeys.length === 0
                  ? "Nothing is under an older key."
                  : `Under older keys: ${system.secrets.underOldKeys.map(({ place, rows }) => `${rows} of ${place}`).join(", ")}. Run npm run rotate-secrets.`}
              </p>
            </div>
          </Card>
        </div>
      </div>,
    );
  },
  forms: {
    async payments({ ctx }) {
      const { problems } = await call(ctx, "checkPayments", {});
      return problems.length === 0
        ? { to: "/operator/system", said: "The payment processor is set up: its key and its webhook work." }
        : { to: "/operator/system", said: problems.join(" "), tone: "bad" };
    },
    async mail({ ctx }) {
      const { to } = await call(ctx, "testMail", {});
      return { to: "/operator/system", said: `A mail is on its way to ${to}.` };
    },
  },
};
