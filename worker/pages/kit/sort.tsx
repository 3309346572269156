import type { Asked } from "./screen.ts";

/** What one row is put in order by. */
type Key<Row> = (row: Row) => string | number;
/** By the word that stands in the address: `?sort=name`, descending `?sort=-name`. */
export type Keys<Row> = Readonly<Record<string, Key<Row>>>;
/** undefined: as the API has them. */
export type Order = { by: string; isDescending: boolean } | undefined;

export function orderIn(query: Asked["query"], keys: Keys<never>): Order {
  const [, minus, by = ""] = /^(-?)(\w+)$/.exec(query("sort") ?? "") ?? [];
  return Object.hasOwn(keys, by) ? { by, isDescending: minus === "-" } : undefined;
}

const compared = (one: string | number, other: string | number): number =>
  typeof one === "number" && typeof other === "number"
    ? one - other
    : String(one).localeCompare(String(other), "en", { numeric: true });

export function inOrder<Row>(rows: readonly Row[], order: Order, keys: Keys<Row>): readonly Row[] {
  const key = order && keys[order.by];
  if (!key) return rows;
  return rows.toSorted((one, other) => (order.isDescending ? -1 : 1) * compared(key(one), key(other)));
}

/** `?sort=…`, for links that keep the order. */
export const sortOf = (order: NonNullable<Order>): string => (order.isDescending ? "-" : "") + order.by;

/** A column's head: a link that puts the table in order by it, and the other way round where it is. */
export const SortHead = ({
  path,
  by,
  label,
  order,
  class: classes = "",
}: {
  path: string;
  by: string;
  label: string;
  order: Order;
  class?: string;
}) => {
  const isBy = order?.by === by;
  const next = isBy && !order.isDescending ? `-${by}` : by;
  return (
    <th
      scope="col"
      class={classes}
      {...(isBy && { "aria-sort": order.isDescending ? ("descending" as const) : ("ascending" as const) })}
    >
      <a class="sort" href={`${path}?sort=${next}`}>
        {label}
      </a>
    </th>
  );
};
