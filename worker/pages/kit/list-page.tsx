import type { Child } from "hono/jsx";
import type { Page } from "../../../protocol/api/common.ts";
import type { IdKind } from "../../../protocol/ids.ts";
import { allOf, cursorIn } from "./paging.ts";
import { Card, Empty, Heading, Pager } from "./parts.tsx";
import type { Asked } from "./screen.ts";
import { inOrder, orderIn, SortHead, sortOf, type Keys, type Order } from "./sort.tsx";

const limit = 100;

type Listed<Row> = { rows: readonly Row[]; order: Order; next: string | null };

/** A page of a list: newest first, as the API has it, or in the order that is asked for, for which all of it is read. */
export async function listed<Row>(
  query: Asked["query"],
  kind: IdKind,
  keys: Keys<Row>,
  list: (page: { limit: number; cursor?: string | undefined }) => Promise<Page<Row>>,
): Promise<Listed<Row>> {
  const order = orderIn(query, keys);
  if (!order) {
    const { data, nextCursor } = await list({ limit, ...cursorIn(query, kind) });
    return { rows: data, order, next: nextCursor };
  }
  const all = await allOf(list);
  const from = /^\d{1,6}$/.test(query("from") ?? "") ? Number(query("from")) : 0;
  const next = from + limit;
  return {
    rows: inOrder(all, order, keys).slice(from, next),
    order,
    next: next < all.length ? String(next) : null,
  };
}

/** The page that lists what the account has of one kind, a row each. New ones are made at `<path>/new`. */
export const ListPage = <Row,>({
  path,
  title,
  noun,
  about,
  columns,
  listed: { rows, order, next },
  row,
}: {
  path: string;
  title: string;
  /** Of one of them. */
  noun: string;
  /** What they are, where there is none yet. */
  about: string;
  /** `by`: the key that its rows can be put in order by. */
  columns: readonly { label: string; by?: string; class?: "wide-only" | "end" }[];
  listed: Listed<Row>;
  row: (row: Row) => Child;
}) => (
  <>
    <Heading title={title}>
      <a class="button primary" href={`${path}/new`}>
        New {noun}
      </a>
    </Heading>
    <Card id="list" live>
      {rows.length === 0 ? (
        <Empty title={`No ${noun}s yet`} text={about}>
          <a class="button" href={`${path}/new`}>
            New {noun}
          </a>
        </Empty>
      ) : (
        <table class="roomy">
          <thead>
            <tr>
              {columns.map(({ label, by, class: classes = "" }) =>
                by === undefined ? (
                  <th scope="col" class={classes}>
                    {label}
                  </th>
                ) : (
                  <SortHead path={path} by={by} label={label} order={order} class={classes} />
                ),
              )}
            </tr>
          </thead>
          <tbody>{rows.map(row)}</tbody>
        </table>
      )}
    </Card>
    {order ? (
      <Pager path={`${path}?sort=${sortOf(order)}`} by="from" next={next} label={`More ${noun}s`} />
    ) : (
      <Pager path={path} next={next} label={`Older ${noun}s`} />
    )}
  </>
);
