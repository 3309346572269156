import type { Activity } from "../../../protocol/api/activity.ts";
import type { OwnAccount } from "../../../protocol/api/accounts.ts";
import { activityActors } from "../../../protocol/states.ts";
import { call } from "../../api/call.ts";
import { activityText, actorText, actorWords, pathOfResource, resourceText } from "../kit/activity-words.ts";
import { FilterSelect } from "../kit/form.tsx";
import { cursorIn, everyTerm } from "../kit/paging.ts";
import { Card, Empty, Head, Heading, Pager, Time } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";

type Terms = OwnAccount["terms"];

const outcomes: Readonly<Record<string, string>> = {
  conflict: "it was not possible then, or had to be confirmed",
  invalid_request: "the request was not valid",
  payment_required: "an invoice is unpaid",
  forbidden: "it was not allowed",
  "Not found": "it did not exist",
  not_found: "it did not exist",
  rate_limited: "too many requests",
  server_error: "a server error",
};

const About = ({ row, terms }: { row: Activity; terms: Terms }) => {
  if (row.resourceId === null) {
    // A call of the assistant says what it is about in its arguments.
    const named = row.arguments["site"] ?? row.arguments["db"];
    return typeof named === "string" ? <>{named}</> : null;
  }
  const path = pathOfResource(row.resourceId);
  const shown = resourceText(row.resourceId, terms) ?? <code>{row.resourceId}</code>;
  return path === null ? <>{shown}</> : <a href={path}>{shown}</a>;
};

/** What was asked, where it says more than the words; secrets are not in the record. */
const Details = ({ row }: { row: Activity }) => {
  const given = Object.entries(row.arguments).filter(([name]) => name !== "action");
  if (given.length === 0) return null;
  return (
    <details id={row.id}>
      <summary class="soft small" aria-label={`Details: ${activityText(row)}`}>
        Details
      </summary>
      <pre tabindex={0}>{JSON.stringify(Object.fromEntries(given), null, 2)}</pre>
    </details>
  );
};

const Row = ({ row, terms }: { row: Activity; terms: Terms }) => (
  <tr>
    <td class="any-break">
      {activityText(row)}
      {row.outcome === "asked" && <div class="soft small">Waited for your confirmation</div>}
      {row.outcome !== "done" && row.outcome !== "asked" && (
        <div class="bad small">Refused: {outcomes[row.outcome] ?? row.outcome.replaceAll("_", " ")}</div>
      )}
      <Details row={row} />
    </td>
    <td class="any-break">
      <About row={row} terms={terms} />
    </td>
    <td class="wide-only soft">{actorText(row)}</td>
    <td class="end soft">
      <Time at={row.at} />
    </td>
  </tr>
);

const chosen = <Value extends string>(values: readonly Value[], text: string | undefined) =>
  values.find((value) => value === text);

export const activityList: Screen = {
  path: "/activity",
  async show({ ctx, viewer, query }) {
    const resource = query("resource") ?? "";
    const actor = chosen(activityActors, query("actor"));
    const only = chosen(["changes", "calls", "all"] as const, query("only")) ?? "changes";
    const [{ data, nextCursor }, terms] = await Promise.all([
      call(ctx, "listActivity", {
        limit: 50,
        ...(only !== "all" && { only }),
        ...cursorIn(query, "activity"),
        ...(resource !== "" && { resource }),
        ...(actor !== undefined && { actor }),
      }),
      everyTerm(ctx, viewer),
    ]);
    const filters = new URLSearchParams({
      ...(resource !== "" && { resource }),
      ...(actor !== undefined && { actor }),
      ...(only !== "changes" && { only }),
    });
    const isFiltered = filters.size > 0;
    const known = terms.some(({ id }) => id === resource);
    return {
      title: "Activity",
      section: "activity",
      about: ["account"],
      body: (
        <>
          <Heading title="Activity" below="Who changed what, and when, over the past year." />
          <form class="filters" method="get" action="/activity">
            <FilterSelect
              name="resource"
              label="About"
              any="Everything"
              value={resource}
              options={[
                ...(resource !== "" && !known ? [[resource, resource] as const] : []),
                ...terms.map(({ id, name, kind }) => [id, `${name} (${kind})`] as const),
              ]}
            />
            <FilterSelect
              name="actor"
              label="By"
              any="By anyone"
              value={actor}
              options={activityActors.map((one) => [one, `By ${actorWords[one]}`] as const)}
            />
            <FilterSelect
              name="only"
              label="Which entries"
              any="Changes"
              value={only}
              options={[
                ["calls", "What the assistant called"],
                ["all", "All, and what operators looked at"],
              ]}
            />
            <button type="submit">Show</button>
            {isFiltered && <a href="/activity">Show everything</a>}
          </form>
          <Card id="activity" live>
            {data.length === 0 ? (
              <Empty
                title={isFiltered ? "Nothing matches" : "Nothing has happened yet"}
                text={
                  isFiltered
                    ? "Nothing of this kind is on record."
                    : "Every change to your sites, databases and keys is listed here."
                }
              >
                <a class="button" href={isFiltered ? "/activity" : "/sites/new"}>
                  {isFiltered ? "Show everything" : "New site"}
                </a>
              </Empty>
            ) : (
              <table class="roomy">
                <Head columns={["What", "About", ["By", "wide-only"], ["When", "end"]]} />
                <tbody>
                  {data.map((row) => (
                    <Row row={row} terms={terms} />
                  ))}
                </tbody>
              </table>
            )}
          </Card>
          <Pager
            path={isFiltered ? `/activity?${filters.toString()}` : "/activity"}
            next={nextCursor}
            label="Older entries"
          />
        </>
      ),
    };
  },
};
