import { bold, dim, duration, fields, paginated, safe, size, status, table, when } from "./terminal.ts";

type Row = Record<string, unknown>;

const isObject = (value: unknown): value is Row =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Words of a field's name: accountEmail → account email. A unit at its end goes with the value. */
const titleOf = (name: string): string =>
  name
    .replace(/(?:Cents|Mb|Gb|Ms|At|Seconds|Bytes)$/, "")
    .replaceAll(/(?<=[a-z0-9])(?<!Git)[A-Z]|(?<=[A-Z])[A-Z](?=[a-z])/g, " $&")
    .toLowerCase() || name;

/** A value as its name and unit say: names carry units in this API. */
function valueText(name: string, value: unknown): string {
  if (value === null || value === undefined) return dim("–");
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") {
    if (name === "status" || name === "state") return status(value);
    if (name === "id" || name.endsWith("Id")) return dim(safe(value));
    if (name === "name") return bold(safe(value));
    const isTime = /(?:^at|At|Since|^since|Until)$/.test(name) && !Number.isNaN(Date.parse(value));
    return isTime ? when(value) : safe(value);
  }
  if (typeof value === "number") {
    if (name.endsWith("Cents")) return (value / 100).toFixed(2);
    if (name.endsWith("Mb")) return size(value);
    if (name.endsWith("Gb")) return `${value} GB`;
    if (name.endsWith("Bytes")) return size(value / 1_048_576);
    if (name.endsWith("Ms")) return duration(value);
    if (name.endsWith("Seconds")) return duration(value * 1000);
    return String(value);
  }
  if (Array.isArray(value)) return value.map((one) => inLine(one)).join(", ") || dim("–");
  return inLine(value);
}

/** An object within a cell or a line. */
const inLine = (value: unknown): string =>
  isObject(value)
    ? Object.entries(value)
        .filter(([, one]) => one !== null)
        .map(([name, one]) => `${titleOf(name)} ${valueText(name, one)}`)
        .join(" ")
    : valueText("", value);

/** An answer without a page of its own: names and values, objects within it by their path, lists as tables. */
export function shown(answer: object): string {
  const values: Record<string, string> = {};
  const tables: string[] = [];
  const walk = (of: Row, before: string) => {
    for (const [name, value] of Object.entries(of)) {
      const title = `${before}${titleOf(name)}`;
      if (isObject(value)) walk(value, `${title} `);
      else if (Array.isArray(value) && value.some(isObject))
        tables.push(`${bold(title)}\n${rowsText(value as Row[])}`);
      else values[title] = valueText(name, value);
    }
  };
  walk(answer as Row, "");
  return [fields(values), ...tables].filter((text) => text !== "").join("\n\n");
}

function rowsText(rows: readonly Row[], names?: readonly string[]): string {
  const columns = names ?? [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return table(
    rows,
    Object.fromEntries(columns.map((name) => [titleOf(name), (row: Row) => valueText(name, row[name])])),
    "None.",
  );
}

/** A page of a list, with these fields of its items. */
export const listed =
  <Item extends object>(...names: (keyof Item & string)[]) =>
  ({ data, nextCursor }: { data: readonly Item[]; nextCursor?: string | null }): string =>
    paginated(rowsText(data as unknown as Row[], names), nextCursor);
