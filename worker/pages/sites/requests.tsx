import {
  RequestFilters,
  RequestWindow,
  requestWindows,
  type RequestStats,
  type SiteRequest,
} from "../../../protocol/api/requests.ts";
import { call } from "../../api/call.ts";
import { Charts, type ChartOf, type Columns, type Line } from "../kit/chart.tsx";
import { Callout, Card, Empty, Head, Live, Time } from "../kit/parts.tsx";
import { Ranges } from "../kit/ranges.tsx";
import type { Screen } from "../kit/screen.ts";
import { size } from "../kit/size.ts";
import { siteFrame } from "./frame.tsx";
import { orWhy } from "./or-why.ts";

const labels: Record<RequestWindow, [label: string, time: string]> = {
  "1h": ["1 hour", "hour"],
  "24h": ["24 hours", "24 hours"],
  "7d": ["7 days", "7 days"],
  "30d": ["30 days", "30 days"],
};

/** Those of the window: a host may say that it counted for centuries. */
const columnsOf = ({ window, from }: RequestStats): Columns => {
  const { seconds, intervalSeconds } = requestWindows[window];
  const stepMs = intervalSeconds * 1000;
  return {
    startMs: Math.floor(Date.parse(from) / stepMs) * stepMs,
    stepMs,
    count: seconds / intervalSeconds,
  };
};

function chartsOf(stats: RequestStats, { startMs, stepMs, count }: Columns): ChartOf[] {
  const line = (
    label: string,
    of: (one: RequestStats["series"][number]) => number | null,
    none: number | null,
    tone?: Line["tone"],
  ): Line => {
    const values = Array.from<number | null>({ length: count }).fill(none);
    for (const one of stats.series) {
      const column = Math.floor((Date.parse(one.at) - startMs) / stepMs);
      if (column >= 0 && column < count) values[column] = of(one);
    }
    return { label, values, ...(tone && { tone }) };
  };
  return [
    {
      title: "Requests",
      unit: `per ${stepMs === 60_000 ? "minute" : stepMs === 3_600_000 ? "hour" : "quarter of an hour"}`,
      digits: 0,
      limit: null,
      lines: [
        line("All", ({ requests }) => requests, 0),
        line("5xx", ({ statuses }) => statuses["5xx"], 0, "bad"),
      ],
    },
    {
      title: "Response time",
      unit: "ms",
      digits: 0,
      limit: null,
      lines: [line("p50", ({ p50Ms }) => p50Ms, null), line("p95", ({ p95Ms }) => p95Ms, null, "soft")],
    },
  ];
}

const ms = (value: number | null): string =>
  value === null ? "–" : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;

const Figures = ({ totals }: { totals: RequestStats["totals"] }) => {
  const failed = totals.statuses["5xx"];
  const share = totals.requests === 0 ? 0 : (failed / totals.requests) * 100;
  const tiles: [name: string, value: string, tone?: string | undefined][] = [
    ["Requests", totals.requests.toLocaleString("en-US")],
    ["Half are answered within", ms(totals.p50Ms)],
    ["95 % within", ms(totals.p95Ms)],
    [
      "Failed (5xx)",
      `${failed.toLocaleString("en-US")} (${share.toFixed(1)}%)`,
      failed > 0 ? "bad" : undefined,
    ],
    ["Sent", size(totals.bytesOut)],
  ];
  return (
    <dl class="figures">
      {tiles.map(([name, value, tone]) => (
        <div>
          <dt>{name}</dt>
          <dd class={tone ?? ""}>{value}</dd>
        </div>
      ))}
    </dl>
  );
};

const Tops = ({ title, tops }: { title: string; tops: { value: string; requests: number }[] }) =>
  tops.length === 0 ? null : (
    <Card title={title}>
      <table>
        {tops.map(({ value, requests }) => (
          <tr>
            <td>{value}</td>
            <td class="number">{requests.toLocaleString("en-US")}</td>
          </tr>
        ))}
      </table>
    </Card>
  );

const tone = (status: number): string =>
  status >= 500 ? "bad" : status >= 400 || status === 0 ? "warn" : "";

const Row = ({ request }: { request: SiteRequest }) => (
  <tr>
    <td class="soft">
      <Time at={request.at} />
    </td>
    <td class={tone(request.status)}>{request.status === 0 ? "left" : request.status}</td>
    <td>
      <code>
        {request.method} {request.path}
        {request.query !== null && <span class="soft">?{request.query}</span>}
      </code>
      {request.represents > 1 && <span class="chip">represents {request.represents}</span>}
    </td>
    <td class="number">{ms(request.durationMs)}</td>
    <td class="number wide-only">{size(request.bytesOut)}</td>
    <td class="wide-only soft">{request.address}</td>
  </tr>
);

const Typed = ({
  name,
  label,
  filters,
  ...input
}: {
  name: string;
  label: string;
  filters: Record<string, string>;
  autocapitalize?: "characters";
  placeholder: string;
  maxlength: number;
}) => (
  <label>
    {label}
    <input name={name} autocapitalize="none" spellcheck={false} value={filters[name] ?? ""} {...input} />
  </label>
);

const Filter = ({
  here,
  window,
  filters,
}: {
  here: string;
  window: string;
  filters: Record<string, string>;
}) => (
  <form class="filters" method="get" action={here}>
    <input type="hidden" name="window" value={window} />
    <Typed name="status" label="Status" filters={filters} placeholder="5xx or 404" maxlength={3} />
    <Typed name="path" label="Path begins with" filters={filters} placeholder="/api/" maxlength={500} />
    <Typed
      name="method"
      label="Method"
      filters={filters}
      autocapitalize="characters"
      placeholder="GET"
      maxlength={20}
    />
    <Typed
      name="address"
      label="Visitor's address"
      filters={filters}
      placeholder="203.0.113.7"
      maxlength={45}
    />
    <button type="submit">Filter</button>
    {Object.keys(filters).length > 0 && <a href={`${here}?window=${window}`}>All</a>}
  </form>
);

export const siteRequests: Screen = {
  path: "/sites/:id/requests",
  async show({ ctx, param, query }) {
    const site = await call(ctx, "getSite", { id: param("id") });
    const window = RequestWindow.catch("1h").parse(query("window"));
    const typed = Object.fromEntries(
      ["status", "path", "method", "address"].flatMap((name) => {
        const value = query(name)?.trim() ?? "";
        return value === "" ? [] : [[name, value]];
      }),
    );
    const filters = RequestFilters.safeParse(typed);
    const cursor = /^\d{1,15}$/.exec(query("cursor") ?? "")?.[0];
    const [stats, requests] = await Promise.all([
      orWhy(call(ctx, "getSiteRequestStats", { id: site.id, window })),
      filters.success
        ? orWhy(
            call(ctx, "getSiteRequests", {
              id: site.id,
              follow: "0",
              limit: 50,
              ...filters.data,
              ...(cursor !== undefined && { cursor }),
            }),
          )
        : { found: null, why: "This filter is not valid: a status is 404 or 5xx, an address 203.0.113.7." },
    ]);
    const here = `/sites/${site.id}/requests`;
    const list = requests.found !== null && "data" in requests.found ? requests.found : null;
    const columns = stats.found && columnsOf(stats.found);
    const older = list?.nextCursor ?? null;
    return siteFrame(
      site,
      "Requests",
      <div class="stack">
        <Card
          title="How the site answers"
          end={
            <Ranges
              path={here}
              name="window"
              current={window}
              keep={typed}
              options={(Object.keys(requestWindows) as RequestWindow[]).map(
                (one) => [one, labels[one][0]] as const,
              )}
            />
          }
        >
          <div class="body">
            {stats.why !== null && (
              <Callout tone="warn">
                <p>{stats.why}</p>
              </Callout>
            )}
            {stats.found && columns && (
              <>
                <Live id="figures">
                  <Figures totals={stats.found.totals} />
                </Live>
                {stats.found.totals.requests > 0 && (
                  <Charts
                    charts={chartsOf(stats.found, columns)}
                    columns={columns}
                    time={labels[window][1]}
                  />
                )}
              </>
            )}
          </div>
        </Card>
        {stats.found && stats.found.totals.requests > 0 && (
          <div class="halves">
            <Tops title="Paths" tops={stats.found.top.paths} />
            <Tops title="Referrers" tops={stats.found.top.referrers} />
          </div>
        )}
        <Card
          title="Latest requests"
          {...(list !== null &&
            cursor === undefined && {
              end: (
                <live-requests
                  class="row needs-script"
                  data-stream={`/api/v1${here}?${new URLSearchParams({ ...typed, follow: "1" }).toString()}`}
                />
              ),
            })}
        >
          <div class="body">
            <Filter here={here} window={window} filters={typed} />
          </div>
          <Live id="requests">
            {requests.why !== null && <p class="body warn">{requests.why}</p>}
            {list?.data.length === 0 && (
              <Empty
                title="No requests"
                text={
                  Object.keys(typed).length > 0
                    ? "None of the latest 10,000 requests matches this filter."
                    : "Nobody has visited the site yet. The latest 10,000 requests are kept."
                }
              >
                <a class="button" href={site.url}>
                  Open the site
                </a>
              </Empty>
            )}
            {list && list.data.length > 0 && (
              <table>
                <Head
                  columns={[
                    "When",
                    "Status",
                    "Request",
                    ["Took", "number"],
                    ["Sent", "number wide-only"],
                    ["Visitor", "wide-only"],
                  ]}
                />
                <tbody>
                  {list.data.map((request) => (
                    <Row request={request} />
                  ))}
                </tbody>
              </table>
            )}
          </Live>
        </Card>
        {older !== null && (
          <p class="links">
            <a href={`${here}?${new URLSearchParams({ window, ...typed, cursor: older }).toString()}`}>
              Older requests
            </a>
          </p>
        )}
      </div>,
      { islands: ["charts", "requests"] },
    );
  },
};
