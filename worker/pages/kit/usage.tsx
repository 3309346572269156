import type { Pack } from "../../../protocol/api/packs.ts";
import type { SiteSample } from "../../../protocol/api/running.ts";
import { Charts, inColumns, type ChartOf, type Columns, type Marker } from "./chart.tsx";
import { Callout, Card, Empty } from "./parts.tsx";
import { Ranges } from "./ranges.tsx";

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

/** What a site or database used, of its pack's limits. `now` ends the range; `why`: the host could not be asked. */
export const Usage = ({
  path,
  asked,
  now,
  samples,
  why,
  pack,
  deployments = [],
}: {
  path: string;
  /** The range from the query. */
  asked: string | undefined;
  now: Date;
  samples: SiteSample[];
  why: string | null;
  pack: Pack | undefined;
  deployments?: readonly (Marker & { isServing: boolean })[];
}) => {
  const range: Range = asked !== undefined && Object.hasOwn(ranges, asked) ? (asked as Range) : "1h";
  const { hours, stepMs, time } = ranges[range];
  const count = (hours * 60 * minuteMs) / stepMs;
  const endMs = Math.ceil(now.getTime() / minuteMs) * minuteMs;
  const columns = { startMs: endMs - count * stepMs, stepMs, count };
  const charts = chartsOf(samples, columns, pack);
  const markers = deployments.filter(({ atMs, isServing }) => isServing && atMs >= columns.startMs);
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
            text="What runs is measured once a minute: processor, memory, network and disk, for the last 24 hours."
          >
            <a class="button" href={path}>
              Look again
            </a>
          </Empty>
        )}
        {charts.length > 0 && <Charts charts={charts} columns={columns} markers={markers} time={time} />}
      </div>
    </Card>
  );
};
