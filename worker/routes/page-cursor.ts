import type { Context } from "hono";
import { listQuery } from "../../protocol/api/common.ts";
import type { IdKind } from "../../protocol/ids.ts";
import type { AppEnv } from "../app-env.ts";

/** Where a page goes on with a list of this kind; one that the list never gave out begins it again. */
export const cursorOf = (c: Context<AppEnv>, kind: IdKind): string | undefined =>
  listQuery(kind).shape.cursor.safeParse(c.req.query("cursor")).data;
