import { sql, type SQL } from "drizzle-orm";
import { isId } from "../../protocol/ids.ts";

/** What has a term. The statements of this folder are the same for both, but for the table. */
export type Termed = "sites" | "databases";
export const termed: readonly Termed[] = ["sites", "databases"];

export const tableOf = (kind: Termed): SQL => sql.raw(kind);
export const wordOf = (kind: Termed): "site" | "database" => (kind === "sites" ? "site" : "database");

/** Of which kind an invoice's resource is. */
export const termedOf = (resourceId: string | null): Termed | null =>
  resourceId === null
    ? null
    : isId("site", resourceId)
      ? "sites"
      : isId("database", resourceId)
        ? "databases"
        : null;
