import type { Deployment } from "../../../protocol/api/deployments.ts";
import type { Pack } from "../../../protocol/api/packs.ts";
import type { SiteSample } from "../../../protocol/api/running.ts";
import { call } from "../../api/call.ts";
import { Charts, inColumns, type ChartOf, type Columns, type Marker } from "../kit/chart.tsx";
import { Callout, Card, Empty } from "../kit/parts.tsx";
import { Ranges } from "../kit/ranges.tsx";
import type { Screen } from "../kit/screen.ts";
import { orWhy } from "./or-why.ts";
import { siteFrame } from "./frame.tsx";

const minuteMs = 60_000;
/** What hosts keep is a day. More columns than minutes show nothing more. */
const ranges = {
  "1h": { label: "1 hour", time: "hour", hours: 1, stepMs: minuteMs },
  "6h": { label: "6 hours", time: "6 hours", hours: 6, stepMs: minuteMs },
  "24h": { label: "24 hours", time: "24 hours", hours: 24, stepMs: 4 * minuteMs },
} as const;
type Range = keyof typeof ranges;

function chartsOf(samples: SiteSample[], columns: Columns, pack: Pack | undefined): ChartOf[] {
  const values = (of: (sample: SiteSample) => number | null) =>
    inColumns(
      columns,
      samples.flatMap((sample) => {
        const value = of(sample);
        return value === null ? [] : [{ atMs: Date.parse(sample.at), value }];
      }),
    );
  const chart = (
    title: string,
    unit: string,
    digits: number,
    limit: number | null,
    of: (sample: SiteSample) => number | null,
  ): ChartOf => ({ title, unit, digits, limit, lines: [{ label: title, values: values(of) }] });
  const all = [
    chart("Processor", "cores", 2, pack ? pack.cpuMilli / 1000 : null, ({ cpuMilli }) => cpuMilli / 1000),
    chart("Memory", "MB", 0, pack?.memoryMb ?? null, ({ memoryMb }) => memoryMb),
    chart(
      "Network",
      "MB per minute",
      1,
      null,
      ({ networkInBytes, networkOutBytes }) => (networkInBytes + networkOutBytes) / 1_000_000,
    ),
    chart("Disk", "MB", 0, pack ? pack.diskGb * 1024 : null, ({ diskMb }) => diskMb),
  ];
  return all.filter(({ lines }) => lines[0]?.values.some((value) => value !== null));
}

const markersOf = (deployments: Deployment[], sinceMs: number): Marker[] =>
  deployments.flatMap(({ number, finishedAt, status }) =>
    finishedAt !== null && Date.parse(finishedAt) >= sinceMs && (status === "LIVE" || status === "SUPERSEDED")
      ? [{ atMs: Date.parse(finishedAt), label: `#${number}` }]
      : [],
  );

export const siteMetrics: Screen = {
  path: "/sites/:id/metrics",
  async show({ ctx, param, query }) {
    const site = await call(ctx, "getSite", { id: param("id") });
    const asked = query("range") ?? "1h";
    const range: Range = Object.hasOwn(ranges, asked) ? (asked as Range) : "1h";
    const { hours, stepMs, time } = ranges[range];
    const [metrics, { data: packs }, { data: deployments }] = await Promise.all([
      orWhy(call(ctx, "getSiteMetrics", { id: site.id })),
      call(ctx, "listPacks", { limit: 100 }),
      call(ctx, "listDeployments", { id: site.id, limit: 100 }),
    ]);
    const count = (hours * 60 * minuteMs) / stepMs;
    const endMs = Math.ceil(ctx.now().getTime() / minuteMs) * minuteMs;
    const columns = { startMs: endMs - count * stepMs, stepMs, count };
    const charts = chartsOf(
      metrics.found?.data ?? [],
      columns,
      packs.find(({ id }) => id === site.packId),
    );
    const here = `/sites/${site.id}/metrics`;
    return siteFrame(
      site,
      "Metrics",
      <div class="stack">
        <Card
          title="Usage"
          end={
            <Ranges
              path={here}
              name="range"
              current={range}
              options={Object.entries(ranges).map(([value, { label }]) => [value, label] as const)}
            />
          }
        >
          <div class="body">
            {metrics.why !== null && (
              <Callout tone="warn">
                <p>{metrics.why}</p>
              </Callout>
            )}
            {metrics.why === null && charts.length === 0 && (
              <Empty
                title="Nothing measured yet"
                text="A running site is measured once a minute: processor, memory, network and disk, for the last 24 hours."
              >
                <a class="button" href={here}>
                  Look again
                </a>
              </Empty>
            )}
            {charts.length > 0 && (
              <Charts
                charts={charts}
                columns={columns}
                markers={markersOf(deployments, columns.startMs)}
                time={time}
              />
            )}
          </div>
        </Card>
      </div>,
      { islands: ["charts"] },
    );
  },
};
