import { call } from "../../api/call.ts";
import type { OwnAccount } from "../../../protocol/api/accounts.ts";
import type { Activity } from "../../../protocol/api/activity.ts";
import { activityText } from "../kit/activity-words.ts";
import { Card, Day, Empty, Heading, Live, Status, Time } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { databaseWords, siteWords } from "../kit/words.ts";
import { money } from "../money.ts";

type Term = OwnAccount["terms"][number];

const path = ({ kind, id }: Pick<Term, "kind" | "id">) => `/${kind}s/${id}`;

const TermRow = ({ term }: { term: Term }) => (
  <tr>
    <td>
      <a href={path(term)}>{term.name}</a>
    </td>
    <td>
      <Status {...(term.kind === "site" ? siteWords[term.status] : databaseWords[term.status])} />
    </td>
    <td class="wide-only soft">{term.kind === "site" ? "Site" : "Database"}</td>
    <td class="end soft">
      {term.paidUntil === null ? "not paid yet" : <>paid until {<Day at={term.paidUntil} />}</>}
    </td>
  </tr>
);

const ActivityRow = ({ row }: { row: Activity }) => (
  <tr>
    <td>
      {activityText(row)} {row.outcome !== "done" && <span class="bad">{row.outcome}</span>}
    </td>
    <td class="end soft">
      <Time at={row.at} />
    </td>
  </tr>
);

const Start = () => (
  <Card>
    <Empty
      title="Your first site"
      text="Name a Git repository: we look at it, you see the price, and after the payment it is built and put online. The sample needs no repository of yours."
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
    const [unhealthy, activity] = await Promise.all([
      call(ctx, "listUnhealthy", {}),
      call(ctx, "listActivity", { limit: 8 }),
    ]);
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
                  {unhealthy.data.length > 0 && (
                    <Card title="Needs you" tone="fail">
                      <table>
                        {unhealthy.data.map(({ id, name, reason, error, kind }) => (
                          <tr>
                            <td>
                              <a href={path({ kind, id })}>{name}</a>
                            </td>
                            <td>{error ?? reason}</td>
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
                    {viewer.payment.unpaid.length === 0 ? (
                      <p class="body soft">Nothing is due.</p>
                    ) : (
                      <table>
                        {viewer.payment.unpaid.map(({ amountCents, currency, dueAt, kind }) => (
                          <tr>
                            <td>{kind}</td>
                            <td class="number">{money(amountCents, currency)}</td>
                            <td class="end soft">
                              <Day at={dueAt} />
                            </td>
                          </tr>
                        ))}
                      </table>
                    )}
                  </Card>
                  <Card title="Latest activity" end={<a href="/activity">All</a>}>
                    <table>
                      {activity.data.map((row) => (
                        <ActivityRow row={row} />
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
