import { call } from "../../api/call.ts";
import type { OwnAccount } from "../../../protocol/api/accounts.ts";
import type { Unhealthy } from "../../../protocol/api/diagnosis.ts";
import type { Activity } from "../../../protocol/api/activity.ts";
import { activityText, pathOfResource } from "../kit/activity-words.ts";
import { everyTerm } from "../kit/paging.ts";
import { Card, Day, Due, Empty, Heading, Live, Status, Time } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { suspendedFor } from "../kit/viewer.ts";
import { databaseWords, siteWords, type Word } from "../kit/words.ts";
import { headlineOf } from "../sites/failure.tsx";
import { money } from "../money.ts";

type Term = OwnAccount["terms"][number];

const path = ({ kind, id }: Pick<Term, "kind" | "id">) => `/${kind}s/${id}`;

type Unwell = Unhealthy["data"][number];
const wordOf = ({ kind, status }: Unwell): Word => {
  const words: Partial<Record<string, Word>> = kind === "site" ? siteWords : databaseWords;
  return words[status] ?? { tone: "soft", label: status };
};
/** The first sentence of what is wrong; its page has the rest. */
const whatOf = ({ error, reason, status }: Unwell): string =>
  error !== null
    ? headlineOf(error).headline
    : status === "SUSPENDED"
      ? suspendedFor() === null
        ? "Not in service until its invoice is paid."
        : "Not in service while the account is suspended."
      : `${reason.replace(/^./, (letter) => letter.toUpperCase())}.`;

const TermRow = ({ term }: { term: Term }) => (
  <tr>
    <td class="any-break">
      <a href={path(term)}>{term.name}</a>
    </td>
    <td>
      <Status {...(term.kind === "site" ? siteWords[term.status] : databaseWords[term.status])} />
    </td>
    <td class="wide-only soft">{term.kind === "site" ? "Site" : "Database"}</td>
    <td class="end soft wide-only">
      {term.paidUntil === null ? "not paid yet" : <>paid until {<Day at={term.paidUntil} />}</>}
    </td>
  </tr>
);

const ActivityRow = ({ row, terms }: { row: Activity; terms: readonly Term[] }) => {
  const path = row.resourceId === null ? null : pathOfResource(row.resourceId);
  const name = terms.find(({ id }) => id === row.resourceId)?.name;
  return (
    <tr>
      <td class="any-break">
        {activityText(row)}
        {row.outcome !== "done" && <span class="bad"> – refused</span>}
        {name !== undefined && path !== null && (
          <div>
            <a class="small" href={path}>
              {name}
            </a>
          </div>
        )}
      </td>
      <td class="end soft">
        <Time at={row.at} />
      </td>
    </tr>
  );
};

const Start = () => (
  <Card>
    <Empty
      title="Your first site"
      text="Enter a Git repository: we inspect it, you see the price, and after payment it is built and put online. The sample works without a repository of your own."
    >
      <a class="button primary" href="/sites/new">
        New site
      </a>
      <a class="button" href="/sites/new?sample=1">
        Try the sample
      </a>
      <a class="button" href="/databases/new">
        New database
      </a>
    </Empty>
  </Card>
);

/** Everything of the account at a glance. */
export const overview: Screen = {
  path: "/",
  async show({ ctx, viewer }) {
    const [unhealthy, activity, unpaid, terms] = await Promise.all([
      call(ctx, "listUnhealthy", {}),
      call(ctx, "listActivity", { limit: 8, only: "changes" }),
      call(ctx, "listInvoices", { status: "unpaid", limit: 100 }),
      everyTerm(ctx, viewer),
    ]);
    const due = unpaid.data.toSorted((one, other) => one.dueAt.localeCompare(other.dueAt)).slice(0, 5);
    // What was never paid for is under "To pay".
    const needing = unhealthy.data.filter(({ status }) => status !== "PENDING");
    return {
      title: "Home",
      section: "home",
      about: ["account"],
      body: (
        <>
          <Heading title={`Hello, ${viewer.name}`}>
            {viewer.terms.length > 0 && (
              <>
                <a class="button" href="/databases/new">
                  New database
                </a>
                <a class="button primary" href="/sites/new">
                  New site
                </a>
              </>
            )}
          </Heading>
          <Live id="home">
            {viewer.terms.length === 0 ? (
              <Start />
            ) : (
              <div class="split">
                <div class="stack">
                  {needing.length > 0 && (
                    <Card title="Needs attention" tone="fail">
                      <table class="roomy">
                        {needing.map((one) => (
                          <tr>
                            <td class="one-row">
                              <a href={path(one)}>{one.name}</a>
                            </td>
                            <td>
                              <Status {...wordOf(one)} />
                            </td>
                            <td class="any-break">{whatOf(one)}</td>
                          </tr>
                        ))}
                      </table>
                    </Card>
                  )}
                  <Card title="Sites and databases" end={<a href="/sites">All sites</a>}>
                    <table>
                      {viewer.terms.slice(0, 25).map((term) => (
                        <TermRow term={term} />
                      ))}
                    </table>
                  </Card>
                </div>
                <div class="stack">
                  <Card title="To pay" end={<a href="/billing">Billing</a>}>
                    {due.length === 0 ? (
                      <p class="body soft">Nothing is due.</p>
                    ) : (
                      <table>
                        {due.map((invoice) => (
                          <tr>
                            <td class="any-break">
                              <a href={`/invoice/${invoice.token}`}>
                                {invoice.lines[0]?.description ?? "An invoice"}
                              </a>
                              <div class="soft small">
                                <Due invoice={invoice} />
                              </div>
                            </td>
                            <td class="number">{money(invoice.amountCents, invoice.currency)}</td>
                          </tr>
                        ))}
                      </table>
                    )}
                  </Card>
                  <Card title="Latest activity" end={<a href="/activity">All</a>}>
                    <table>
                      {activity.data.map((row) => (
                        <ActivityRow row={row} terms={terms} />
                      ))}
                    </table>
                  </Card>
                </div>
              </div>
            )}
          </Live>
        </>
      ),
    };
  },
};
