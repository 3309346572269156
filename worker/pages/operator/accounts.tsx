import * as z from "zod";
import type { Activity } from "../../../protocol/api/activity.ts";
import { PackChange, type PackForOperator } from "../../../protocol/api/packs.ts";
import { AccountListQuery, AccountPatch, AccountSuspend } from "../../../protocol/api/accounts.ts";
import { CreditGrant } from "../../../protocol/api/credits.ts";
import { call } from "../../api/call.ts";
import { invalid } from "../../domain/app-error.ts";
import { parsed } from "../../domain/parsed.ts";
import { Act, ConfirmByName, Field, Form, Select, Submit, TextArea, typedInto } from "../kit/form.tsx";
import { monthly } from "../kit/plans.tsx";
import { activityText, actorText } from "../kit/activity-words.ts";
import { allOf, cursorIn } from "../kit/paging.ts";
import { Callout, Card, Copied, Day, Due, Empty, Head, Pager, Status, Time } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { databaseWords, invoiceWords, siteWords } from "../kit/words.ts";
import { money } from "../money.ts";
import { headlineOf } from "../sites/failure.tsx";
import { operatorFrame, Search, searched } from "./frame.tsx";

export const operatorAccounts: Screen = {
  path: "/operator/accounts",
  async show({ ctx, query }) {
    const search = query("search") ?? "";
    const asked = parsed(AccountListQuery, {
      limit: "50",
      ...cursorIn(query, "account"),
      ...(search !== "" && { search }),
    });
    const { data, nextCursor } = await call(ctx, "listAccounts", asked);
    return operatorFrame(
      "/operator/accounts",
      <>
        <Search label="Name, email or id" value={search} />
        <Card>
          {data.length === 0 ? (
            <Empty title="No such account" text="Search by part of the name or email address, or by id." />
          ) : (
            <table>
              <Head columns={["Account", "Plan", ["Since", "end"]]} />
              <tbody>
                {data.map(({ id, name, email, plan, role, createdAt }) => (
                  <tr>
                    <td class="any-break">
                      <a href={`/operator/accounts/${id}`}>{email}</a>
                      <br />
                      <span class="soft">{name}</span>
                    </td>
                    <td>
                      {plan} {role === "operator" && <span class="chip">operator</span>}
                    </td>
                    <td class="end soft">
                      <Day at={createdAt} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </Card>
        <Pager
          path={`/operator/accounts${search === "" ? "" : `?search=${encodeURIComponent(search)}`}`}
          next={nextCursor}
          label="Older accounts"
        />
      </>,
    );
  },
};

/** As somebody else reads it: the person who signed in is the customer. */
const byWords = (row: Activity): string => actorText(row).replace(/^you, /, "the customer, ");

/** What a site or database of the customer has, and what an operator can give it for the customer. */
const TermPlan = ({
  term,
  packs,
}: {
  term: { id: string; name: string; packId: string; paidUntil: string | null };
  packs: readonly PackForOperator[];
}) => (
  <details id={`plan-${term.id}`} open={typedInto(`plan:${term.id}`) !== undefined}>
    <summary>
      {packs.find(({ id }) => id === term.packId)?.name}{" "}
      <span class="soft small">
        {term.paidUntil === null ? (
          "not paid yet"
        ) : (
          <>
            until <Day at={term.paidUntil} />
          </>
        )}
      </span>
    </summary>
    {term.paidUntil === null ? (
      <p class="soft">The plan can be changed once the first invoice is paid.</p>
    ) : (
      <Form id="plan" of={term.id}>
        <input type="hidden" name="id" value={term.id} />
        <Select
          name="packId"
          label="Plan"
          hint="A more expensive one is invoiced to the customer and takes effect once paid; a cheaper one, and any while a renewal is open, takes effect at the next renewal."
          value={term.packId}
          options={packs
            .filter(({ id, active }) => active || id === term.packId)
            .map((pack) => [
              pack.id,
              `${pack.name}: ${monthly(pack)}${pack.active ? "" : ", no longer offered"}`,
            ])}
        />
        <Submit label="Change the plan" of={term.name} />
      </Form>
    )}
  </details>
);

const Amount = z.object({ amount: z.coerce.number() });

export const operatorAccount: Screen = {
  path: "/operator/accounts/:id",
  async show({ ctx, viewer, param, query }) {
    const id = param("id");
    const here = `/operator/accounts/${id}`;
    const account = await call(ctx, "getAccountForOperator", { id });
    const owned = { accountId: account.id, limit: 50 };
    const [packs, sites, databases, invoices, activity] = await Promise.all([
      allOf((page) => call(ctx, "listAllPacks", page)),
      // A cursor names the list that it belongs to; the others begin at their newest.
      call(ctx, "listAllSites", { ...owned, ...cursorIn(query, "site") }),
      call(ctx, "listAllDatabases", { ...owned, ...cursorIn(query, "database") }),
      call(ctx, "listAllInvoices", { ...owned, ...cursorIn(query, "invoice") }),
      call(ctx, "listAllActivity", { accountId: account.id, limit: 15, only: "changes" }),
    ]);
    const { suspended } = account;
    return operatorFrame(
      "/operator/accounts",
      <>
        {suspended && (
          <Callout tone="bad" title="Suspended">
            <p>
              Since <Time at={suspended.at} />: {suspended.reason}
            </p>
            <div class="buttons">
              <Act id="release" label="Release" />
            </div>
          </Callout>
        )}
        <div class="split">
          <div class="stack">
            <Card title="Sites" end={<a href={`/operator/sites?account=${account.id}`}>All sites</a>}>
              <table class="roomy">
                {sites.data.map((site) => (
                  <tr>
                    <td class="any-break">
                      <a href={site.url} rel="noreferrer">
                        {site.name}
                      </a>
                      {site.error !== null && (
                        <div class="bad small any-break">{headlineOf(site.error).headline}</div>
                      )}
                    </td>
                    <td>
                      <Status {...siteWords[site.status]} />
                    </td>
                    <td class="end soft one-row">{site.hostName ?? "no host"}</td>
                    <td>
                      <TermPlan term={site} packs={packs.filter(({ kind }) => kind === "site")} />
                    </td>
                  </tr>
                ))}
              </table>
              {sites.data.length === 0 && <p class="body soft">None.</p>}
            </Card>
            <Pager path={here} next={sites.nextCursor} label="Older sites" />
            <Card
              title="Databases"
              end={<a href={`/operator/sites?account=${account.id}&kind=databases`}>All databases</a>}
            >
              <table class="roomy">
                {databases.data.map((database) => (
                  <tr>
                    <td class="any-break">{database.name}</td>
                    <td>
                      <Status {...databaseWords[database.status]} />
                    </td>
                    <td class="end soft one-row">{database.hostName ?? "no host"}</td>
                    <td>
                      <TermPlan term={database} packs={packs.filter(({ kind }) => kind === "database")} />
                    </td>
                  </tr>
                ))}
              </table>
              {databases.data.length === 0 && <p class="body soft">None.</p>}
            </Card>
            <Pager path={here} next={databases.nextCursor} label="Older databases" />
            <Card
              title="Invoices"
              end={<a href={searched("/operator/money", { search: account.email })}>Refund or void</a>}
            >
              <table class="roomy">
                {invoices.data.map((invoice) => (
                  <tr>
                    <td class="any-break">
                      <a href={`/invoice/${invoice.token}`}>
                        {invoice.lines[0]?.description ?? "An invoice"}
                      </a>
                    </td>
                    <td>
                      <Status {...invoiceWords[invoice.status]} />
                      {invoice.status === "unpaid" && (
                        <div class="soft small">
                          <Due invoice={invoice} />
                        </div>
                      )}
                    </td>
                    <td class="number">{money(invoice.amountCents, invoice.currency)}</td>
                    <td class="end soft">
                      <Day at={invoice.createdAt} />
                    </td>
                  </tr>
                ))}
              </table>
              {invoices.data.length === 0 && <p class="body soft">None.</p>}
            </Card>
            <Pager path={here} next={invoices.nextCursor} label="Older invoices" />
            <Card title="Latest activity">
              <table>
                {activity.data.map((row) => (
                  <tr>
                    <td class="any-break">
                      {activityText(row)}
                      {row.outcome !== "done" && <span class="bad"> – refused</span>}
                    </td>
                    <td class="wide-only soft">{byWords(row)}</td>
                    <td class="end soft">
                      <Time at={row.at} />
                    </td>
                  </tr>
                ))}
              </table>
              {activity.data.length === 0 && <p class="body soft">Nothing has been changed yet.</p>}
            </Card>
          </div>
          <div class="stack">
            <Card title="Account">
              <dl>
                <dt>Id</dt>
                <dd>
                  <Copied text={account.id} of="the account's id" />
                </dd>
                <dt>Email</dt>
                <dd>
                  {account.email} {!account.emailVerified && <span class="warn">not confirmed</span>}
                </dd>
                <dt>Plan</dt>
                <dd>{account.plan}</dd>
                <dt>Two-step sign-in</dt>
                <dd>{account.twoFactorEnabled ? "on" : "off"}</dd>
                <dt>Keys</dt>
                <dd>{account.keyCount}</dd>
                <dt>Sessions</dt>
                <dd>{account.sessionCount}</dd>
                <dt>Credits</dt>
                <dd>{account.credits.balance.toLocaleString("en-US")}</dd>
                {account.lastUsedAt !== null && (
                  <>
                    <dt>Last used</dt>
                    <dd>
                      <Time at={account.lastUsedAt} />
                    </dd>
                  </>
                )}
              </dl>
            </Card>
            <Card title="Notes" id="notes">
              <div class="body">
                <Form id="note">
                  <TextArea
                    name="note"
                    prose
                    label="What operators should know"
                    hint="Only operators see it."
                    value={account.note ?? ""}
                    rows={4}
                    maxlength={4000}
                  />
                  <Submit label="Save note" />
                </Form>
              </div>
            </Card>
            <Card title="See the dashboard as this customer">
              <div class="body">
                <p class="soft">
                  Read-only, without secrets; each request is recorded in the customer's activity.
                </p>
                <form method="post" action="/view-as">
                  <input type="hidden" name="accountId" value={account.id} />
                  <p class="form-end">
                    <button type="submit">View as {account.name}</button>
                  </p>
                </form>
              </div>
            </Card>
            <Card title="Grant credits">
              <div class="body">
                <Form id="grant">
                  <Field name="amount" label="Credits" type="number" min={1} required />
                  <Submit label="Grant" />
                </Form>
              </div>
            </Card>
            {account.twoFactorEnabled && account.id !== viewer.id && (
              <ConfirmByName
                id="two-factor"
                summary="Turn off two-step sign-in"
                name={account.email}
                label="Turn off two-step sign-in"
              >
                <p>
                  For a customer who has lost both the authenticator app and the recovery codes: make sure the
                  request really comes from them. All their sessions end, they sign in with their password
                  alone again, and they are notified by mail.
                </p>
              </ConfirmByName>
            )}
            {!suspended && account.role !== "operator" && (
              <Card title="Suspend">
                <div class="body">
                  <p class="soft">
                    Its sites and databases are stopped with their data kept, its keys are refused, and its
                    sessions become read-only.
                  </p>
                  <Form id="suspend">
                    <Field
                      name="reason"
                      prose
                      label="Reason, shown to the customer"
                      required
                      maxlength={500}
                    />
                    <Submit label="Suspend" of={account.email} kind="danger" />
                  </Form>
                </div>
              </Card>
            )}
          </div>
        </div>
      </>,
      account.name,
    );
  },
  forms: {
    async plan({ ctx, param }, fields) {
      const back = `/operator/accounts/${param("id")}`;
      const { takesEffect, invoiceId } = await call(ctx, "patchTerm", {
        id: fields.text("id"),
        ...parsed(PackChange, { packId: fields.text("packId") }),
      });
      const said = {
        now: "The plan is changed.",
        on_payment: "The plan changes once the customer has paid the invoice for the difference.",
        at_renewal: "The plan changes at the next renewal.",
        never: "The plan stays as it is.",
      }[takesEffect];
      return {
        to: back,
        said:
          invoiceId !== null && takesEffect === "at_renewal"
            ? `${said} The open invoice shows its price.`
            : said,
      };
    },
    async note({ ctx, param }, fields) {
      const id = param("id");
      await call(ctx, "patchAccount", { id, ...parsed(AccountPatch, { note: fields.text("note") || null }) });
      return { to: `/operator/accounts/${id}#notes`, said: "The note is saved." };
    },
    async grant({ ctx, param }, fields) {
      const { amount } = fields.read(Amount);
      await call(ctx, "grantCredits", parsed(CreditGrant, { accountId: param("id"), amount }));
      return { to: `/operator/accounts/${param("id")}`, said: "The credits are granted." };
    },
    async "two-factor"({ ctx, param }, fields) {
      const { email } = await call(ctx, "getAccountForOperator", { id: param("id") });
      if (fields.text("confirm").trim() !== email) throw invalid("confirm", `Type ${email}`);
      await call(ctx, "disableTwoFactor", { id: param("id") });
      return {
        to: `/operator/accounts/${param("id")}`,
        said: "Two-step sign-in is off, their sessions have ended, and they are notified by mail.",
      };
    },
    async suspend({ ctx, param }, fields) {
      await call(ctx, "suspendAccount", { id: param("id"), ...fields.read(AccountSuspend) });
      return {
        to: `/operator/accounts/${param("id")}`,
        said: "The account is suspended: what it runs is stopped.",
      };
    },
    async release({ ctx, param }) {
      await call(ctx, "releaseAccount", { id: param("id") });
      return { to: `/operator/accounts/${param("id")}`, said: "The suspension has ended." };
    },
  },
};
