import { listQuery } from "../../../protocol/api/common.ts";
import type { IdKind } from "../../../protocol/ids.ts";
import type { Asked } from "./screen.ts";

/** The cursor of a list in the page's address. A wrong one, such as of another list, shows the first page. */
export function cursorIn(query: Asked["query"], kind: IdKind): { cursor?: string } {
  const { data } = listQuery(kind).shape.cursor.safeParse(query("cursor"));
  return data === undefined ? {} : { cursor: data };
}
