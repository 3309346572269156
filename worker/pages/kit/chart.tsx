/** Lines over time: an SVG for readers without a script, which web/islands/charts.ts replaces by one to point at. */

export type Line = { label: string; values: readonly (number | null)[]; tone?: "bad" | "soft" };
export type ChartOf = {
  title: string;
  unit: string;
  digits: number;
  /** The top of the axis, with a line there; null: the highest value. */
  limit: number | null;
  lines: readonly Line[];
};
export type Marker = { atMs: number; label: string };
/** Columns of equal length; `startMs` is the beginning of the first. */
export type Columns = { startMs: number; stepMs: number; count: number };

const height = 60;

/** The highest value of each column; null: nothing was measured. */
export function inColumns(
  { startMs, stepMs, count }: Columns,
  values: readonly { atMs: number; value: number }[],
): (number | null)[] {
  const columns = Array.from<number | null>({ length: count }).fill(null);
  for (const { atMs, value } of values) {
    const column = Math.floor((atMs - startMs) / stepMs);
    if (column >= 0 && column < count) columns[column] = Math.max(columns[column] ?? 0, value);
  }
  return columns;
}

/** One line per period with data; periods without are left blank. */
const pathOf = (values: readonly (number | null)[], top: number): string =>
  values
    .map((value, column) => {
      if (value === null) return "";
      const y = (height - 1 - (value / (top || 1)) * (height - 2)).toFixed(1);
      return values[column - 1] == null ? `M${column} ${y}h1` : `L${column} ${y}`;
    })
    .join("");

const known = (values: readonly (number | null)[]): number[] => values.filter((value) => value !== null);

const sentence = ({ unit, digits, lines, limit }: ChartOf): string =>
  lines
    .map(({ label, values }) => {
      const [last, most] = [known(values).at(-1), Math.max(0, ...known(values))];
      if (last === undefined) return `${label}: nothing`;
      const name = lines.length === 1 ? "" : `${label} `;
      return `${name}${last.toFixed(digits)} ${unit}, maximum ${most.toFixed(digits)}`;
    })
    .join("; ") + (limit === null ? "" : `, limit ${limit.toFixed(Math.min(digits, 2))}`);

const Drawn = ({ chart, columns, time }: { chart: ChartOf; columns: Columns; time: string }) => {
  const top = Math.max(chart.limit ?? 0, ...chart.lines.flatMap(({ values }) => known(values)));
  return (
    <figure
      class="chart"
      data-chart={JSON.stringify({
        unit: chart.unit,
        digits: chart.digits,
        limit: chart.limit,
        lines: chart.lines,
      })}
    >
      <figcaption>
        <strong>{chart.title}</strong> <span class="soft small">{sentence(chart)}</span>
      </figcaption>
      <svg
        role="img"
        aria-label={`${chart.title} in the last ${time}: ${sentence(chart)}`}
        viewBox={`0 0 ${columns.count} ${height}`}
        preserveAspectRatio="none"
      >
        {chart.lines.map(({ values, tone }) => (
          <path class={tone ?? ""} d={pathOf(values, top)} />
        ))}
      </svg>
    </figure>
  );
};

const mostRows = 24;

/** What the charts show, in rows: the highest value of each stretch of time. */
const AsTable = ({ charts, columns }: { charts: readonly ChartOf[]; columns: Columns }) => {
  const each = Math.ceil(columns.count / mostRows);
  const rows = Array.from({ length: Math.ceil(columns.count / each) }, (_, row) => row * each);
  const lines = charts.flatMap((chart) => chart.lines.map((line) => ({ ...line, chart })));
  return (
    <details class="more">
      <summary>As a table</summary>
      <div class="scroll" tabindex={0} role="region" aria-label="The charts as a table">
        <table>
          <thead>
            <tr>
              <th scope="col">From (UTC)</th>
              {lines.map(({ label, chart }) => (
                <th scope="col" class="number">
                  {chart.lines.length === 1 ? chart.title : label}, {chart.unit}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((from) => (
              <tr>
                <td>
                  {new Date(columns.startMs + from * columns.stepMs)
                    .toISOString()
                    .slice(5, 16)
                    .replace("T", " ")}
                </td>
                {lines.map(({ values, chart }) => {
                  const found = known(values.slice(from, from + each));
                  return (
                    <td class="number">
                      {found.length === 0 ? "–" : Math.max(...found).toFixed(chart.digits)}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
};

/** @param time how long, in words: "hour", "6 hours" */
export const Charts = ({
  charts,
  columns,
  markers = [],
  time,
}: {
  charts: readonly ChartOf[];
  columns: Columns;
  markers?: readonly Marker[];
  time: string;
}) => (
  <time-charts
    data-start={String(columns.startMs / 1000)}
    data-step={String(columns.stepMs / 1000)}
    data-markers={JSON.stringify(markers.map(({ atMs, label }) => ({ at: atMs / 1000, label })))}
  >
    <div class="charts">
      {charts.map((chart) => (
        <Drawn chart={chart} columns={columns} time={time} />
      ))}
    </div>
    {markers.length > 0 && (
      <p class="soft small">
        Dotted lines:{" "}
        {[...new Set(markers.map(({ label }) => (label.startsWith("#") ? `version ${label}` : label)))].join(
          ", ",
        )}
        .
      </p>
    )}
    <AsTable charts={charts} columns={columns} />
  </time-charts>
);
