import type { Context } from "hono";
import { listQuery } from "../../protocol/api/common.ts";
import type { IdKind } from "../../protocol/ids.ts";
import type { AppEnv } from "../app-env.ts";

/** The cursor of a page in the list of this kind; an invalid one restarts the list. */
export const cursorOf = (c: Context<AppEnv>, kind: IdKind): string | undefined =>
  listQuery(kind).shape.cursor.safeParse(c.req.query("cursor")).data;
