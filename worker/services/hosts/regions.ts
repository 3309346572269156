import { and, asc, isNotNull, ne } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { hosts } from "../../db/schema.ts";
import { invalid } from "../../domain/app-error.ts";

/** A query of the regions that have a host, up or not. */
export const regionsOfHosts = (ctx: Ctx) =>
  ctx.db
    .selectDistinct({ region: hosts.region })
    .from(hosts)
    .where(and(ne(hosts.status, "REMOVED"), isNotNull(hosts.region)))
    .orderBy(asc(hosts.region));

/** What no host could take is refused while it costs nothing yet. @throws AppError invalid_request */
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
      ? "no host is in this region, nor in any other: leave it out to be placed anywhere"
      : `no host is in this region, but in ${names}: choose one of them, or leave it out to be placed anywhere`,
  );
}
