import type { OwnAccount } from "../../../protocol/api/accounts.ts";
import { listQuery, type Page } from "../../../protocol/api/common.ts";
import type { IdKind } from "../../../protocol/ids.ts";
import { call } from "../../api/call.ts";
import type { Ctx } from "../../ctx.ts";
import { everyItem } from "../../services/page.ts";
import type { Asked } from "./screen.ts";

/** The cursor of a list in the page's address. A wrong one, such as of another list, shows the first page. */
export function cursorIn(query: Asked["query"], kind: IdKind): { cursor?: string } {
  const { data } = listQuery(kind).shape.cursor.safeParse(query("cursor"));
  return data === undefined ? {} : { cursor: data };
}

/** All of a list, for a page that chooses, counts or finds among all of it. */
export async function allOf<Item>(
  list: (page: { limit: number; cursor: string | undefined }) => Promise<Page<Item>>,
): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of everyItem((cursor) => list({ limit: 100, cursor }))) all.push(item);
  return all;
}

/** The account's sites, to choose one of. */
export const sitesOf = (ctx: Ctx) => allOf((page) => call(ctx, "listSites", page));

export const databasesOf = (ctx: Ctx) => allOf((page) => call(ctx, "listDatabases", page));

type Terms = OwnAccount["terms"];
/** As many of each kind as an account's own `terms` has at most. */
const mostTerms = 100;

/** All sites and databases of an account, by the end of their term as its `terms`, which are not all of them in a large account. */
export async function everyTerm(ctx: Ctx, { terms }: Pick<OwnAccount, "terms">): Promise<Terms> {
  const isWhole = (["site", "database"] as const).every(
    (one) => terms.filter(({ kind }) => kind === one).length < mostTerms,
  );
  if (isWhole) return terms;
  const [sites, databases] = await Promise.all([sitesOf(ctx), databasesOf(ctx)]);
  return [
    ...sites.map((site) => ({ kind: "site" as const, ...site })),
    ...databases.map((database) => ({ kind: "database" as const, ...database })),
  ].toSorted((one, other) => (one.paidUntil ?? "").localeCompare(other.paidUntil ?? ""));
}
