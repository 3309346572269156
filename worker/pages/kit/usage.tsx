import type { Pack } from "../../../protocol/api/packs.ts";
import type { SiteEvent, SiteMetrics, SiteSample, MetricsWindow } from "../../../protocol/api/running.ts";
import { Charts, inColumns, type ChartOf, type Columns, type Line, type Marker } from "./chart.tsx";
import { Callout, Card, Empty } from "./parts.tsx";
import { Ranges } from "./ranges.tsx";

const minuteMs = 60_000;
/** More columns than samples show nothing more. */
const ranges = {
  "1h": { label: "1 hour", time: "hour", hours: 1, stepMs: minuteMs, window: "24h" },
  "6h": { label: "6 hours", time: "6 hours", hours: 6, stepMs: minuteMs, window: "24h" },
  "24h": { label: "24 hours", time: "24 hours", hours: 24, stepMs: 4 * minuteMs, window: "24h" },
  "7d": { label: "7 days", time: "7 days", hours: 7 * 24, stepMs: 15 * minuteMs, window: "7d" },
  "30d": { label: "30 days", time: "30 days", hours: 30 * 24, stepMs: 60 * minuteMs, window: "30d" },
} as const;
type Range = keyof typeof ranges;
const rangeOf = (asked: string | undefined): Range =>
  asked !== undefined && Object.hasOwn(ranges, asked) ? (asked as Range) : "1h";

/** The window of metrics that a range of the page's query needs. */
export const windowOf = (asked: string | undefined): MetricsWindow => ranges[rangeOf(asked)].window;

/** Events to mark in the charts, in a word. */
const marks: Partial<Record<SiteEvent["kind"], string>> = {
  start: "start",
  restart: "restart",
  oom: "out of memory",
  crash_loop: "crash loop",
};
/** A deployment starts a container, which is no news beside it. */
const besideMs = 2 * minuteMs;

function markersOf(
  events: readonly SiteEvent[],
  deployments: readonly (Marker & { isServing: boolean })[],
  { startMs, stepMs }: Columns,
): Marker[] {
  const deployed = deployments.filter(({ atMs, isServing }) => isServing && atMs >= startMs);
  const happened = events.flatMap(({ at, kind }) => {
    const [label, atMs] = [marks[kind], Date.parse(at)];
    const isNews =
      kind !== "start" || !deployed.some((deployment) => Math.abs(deployment.atMs - atMs) < besideMs);
    return label !== undefined && atMs >= startMs && isNews ? [{ atMs, label }] : [];
  });
  const columnOf = ({ atMs, label }: Marker) => `${Math.floor((atMs - startMs) / stepMs)} ${label}`;
  return [...new Map([...happened, ...deployed].map((marker) => [columnOf(marker), marker])).values()];
}

function chartsOf(
  { data: samples, intervalSeconds }: SiteMetrics,
  columns: Columns,
  pack: Pack | undefined,
): ChartOf[] {
  const replicas = [
    ...new Set(samples.flatMap(({ replicas: list = [] }) => list.map(({ replica }) => replica))),
  ].toSorted((a, b) => a - b);
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
    hasReplicas = false,
  ): ChartOf => {
    const all = { label: replicas.length > 0 ? "All" : title, values: values(of) };
    const each = replicas.map((number): Line => {
      const own = ({ replicas: list }: SiteSample) => list?.find(({ replica }) => replica === number);
      return {
        label: `Replica ${number}`,
        tone: "soft",
        values: values((sample) => {
          const used = own(sample);
          return used ? of({ ...sample, ...used }) : null;
        }),
      };
    });
    return { title, unit, digits, limit, lines: hasReplicas ? [all, ...each] : [{ ...all, label: title }] };
  };
  const all = [
    chart(
      "Processor",
      "cores",
      2,
      pack ? pack.cpuMilli / 1000 : null,
      ({ cpuMilli }) => cpuMilli / 1000,
      true,
    ),
    chart("Memory", "MB", 0, pack?.memoryMb ?? null, ({ memoryMb }) => memoryMb, true),
    chart(
      "Network",
      "MB per minute",
      1,
      null,
      ({ networkInBytes, networkOutBytes }) =>
        ((networkInBytes + networkOutBytes) / 1024 ** 2 / intervalSeconds) * 60,
    ),
    chart("Disk", "MB", 0, pack ? pack.diskGb * 1024 : null, ({ diskMb }) => diskMb),
  ];
  return all.filter(({ lines }) => lines[0]?.values.some((value) => value !== null));
}

/** What a site or database used, of its pack's limits. `now` ends the range; `why`: the host could not be asked. */
export const Usage = ({
  path,
  asked,
  now,
  metrics,
  why,
  pack,
  deployments = [],
  events = [],
}: {
  path: string;
  /** The range from the query. */
  asked: string | undefined;
  now: Date;
  metrics: SiteMetrics | null;
  why: string | null;
  pack: Pack | undefined;
  deployments?: readonly (Marker & { isServing: boolean })[];
  events?: readonly SiteEvent[];
}) => {
  const range = rangeOf(asked);
  const { hours, stepMs, time } = ranges[range];
  const count = (hours * 60 * minuteMs) / stepMs;
  const endMs = Math.ceil(now.getTime() / minuteMs) * minuteMs;
  const columns = { startMs: endMs - count * stepMs, stepMs, count };
  const charts = metrics === null ? [] : chartsOf(metrics, columns, pack);
  const markers = markersOf(events, deployments, columns);
  return (
    <Card
      title="Usage"
      end={
        <Ranges
          path={path}
          name="range"
          current={range}
          options={Object.entries(ranges).map(([value, { label }]) => [value, label] as const)}
        />
      }
    >
      <div class="body">
        {why !== null && (
          <Callout tone="warn">
            <p>{why}</p>
          </Callout>
        )}
        {why === null && charts.length === 0 && (
          <Empty
            title="Nothing measured yet"
            text="While it runs, processor, memory, network and disk are measured once a minute. Thirty days are kept."
          >
            <a class="button" href={path}>
              Check again
            </a>
          </Empty>
        )}
        {charts.length > 0 && <Charts charts={charts} columns={columns} markers={markers} time={time} />}
      </div>
    </Card>
  );
};
