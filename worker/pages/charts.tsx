import type { SiteSample } from "../../protocol/api/running.ts";

const [minuteMs, hourMs] = [60_000, 3_600_000];
/** More columns would not be visible; each shows its highest minute. */
const mostColumns = 288;
const height = 60;

const shown: { name: string; unit: string; digits: number; of: (sample: SiteSample) => number | null }[] = [
  { name: "Processor", unit: "cores", digits: 2, of: ({ cpuMilli }) => cpuMilli / 1000 },
  { name: "Memory", unit: "MB", digits: 0, of: ({ memoryMb }) => memoryMb },
  {
    name: "Network",
    unit: "MB per minute",
    digits: 1,
    of: ({ networkInBytes, networkOutBytes }) => (networkInBytes + networkOutBytes) / 1_000_000,
  },
  { name: "Disk", unit: "MB", digits: 0, of: ({ diskMb }) => diskMb },
];

/** One line per period with data; periods in which the site did not run are left blank. */
function pathOf(points: { column: number; value: number }[], most: number): string {
  const highest = new Map<number, number>();
  for (const { column, value } of points) highest.set(column, Math.max(highest.get(column) ?? 0, value));
  return [...highest]
    .map(([column, value]) => {
      const y = (height - 1 - (value / (most || 1)) * (height - 2)).toFixed(1);
      return highest.has(column - 1) ? `L${column} ${y}` : `M${column} ${y}h1`;
    })
    .join("");
}

/** The site's resource usage per minute over the available history, drawn without a script. */
export const Charts = ({ samples, now }: { samples: SiteSample[]; now: Date }) => {
  const ageMs = ({ at }: SiteSample) => now.getTime() - Date.parse(at);
  const hours = Math.ceil(Math.max(1, ...samples.map((sample) => Math.min(24, ageMs(sample) / hourMs))));
  const columns = Math.min(mostColumns, (hours * hourMs) / minuteMs);
  const time = hours === 1 ? "hour" : `${hours} hours`;
  const charts = shown.map(({ name, unit, digits, of }) => {
    const points = samples.flatMap((sample) => {
      const value = of(sample);
      const column = Math.floor(columns * (1 - ageMs(sample) / hourMs / hours));
      return value === null ? [] : [{ column, value }];
    });
    const last = points.at(-1);
    if (!last) return null;
    const most = Math.max(...points.map(({ value }) => value));
    const said = `${last.value.toFixed(digits)} ${unit}, maximum ${most.toFixed(digits)}`;
    return (
      <figure>
        <figcaption>
          {name} <span class="soft">{said}</span>
        </figcaption>
        <svg
          role="img"
          aria-label={`${name} in the last ${time}: ${said}`}
          viewBox={`0 0 ${columns} ${height}`}
          preserveAspectRatio="none"
        >
          <path d={pathOf(points, most)} />
        </svg>
      </figure>
    );
  });
  return (
    <>
      <h2>Last {time}</h2>
      <div class="charts">{charts}</div>
    </>
  );
};
