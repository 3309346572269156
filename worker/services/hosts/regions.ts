import { and, asc, isNotNull, ne } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { hosts } from "../../db/schema.ts";
import { invalid } from "../../domain/app-error.ts";

/** The query for the regions that have a host, connected or not. */
export const regionsOfHosts = (ctx: Ctx) =>
  ctx.db
    .selectDistinct({ region: hosts.region })
    .from(hosts)
    .where(and(ne(hosts.status, "REMOVED"), isNotNull(hosts.region)))
    .orderBy(asc(hosts.region));

/** Rejects a region without hosts before anything is paid for. @throws AppError invalid_request */
export function refuseUnknownRegion(
  path: string,
  wanted: string | null | undefined,
  known: { region: string | null }[],
): void {
  if (wanted == null || known.some(({ region }) => region === wanted)) return;
  const names = known.map(({ region }) => region).join(", ");
  throw invalid(
    path,
    names === ""
      ? "this region has no hosts, nor does any other: omit it to use any host"
      : `this region has no hosts, only ${names}: choose one of them, or omit it to use any host`,
  );
}
