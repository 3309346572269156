import { and, desc, eq, isNotNull, isNull, sql } from "drizzle-orm";
import type { SourceInspect, SourceInspection } from "../../../protocol/api/sources.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { hosts } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { askThis } from "../running/ask-host.ts";

/** A usual repository takes a second; a Git host that is slow is given up before a browser gives up. */
const timeoutMs = 15_000;
/** As many are enough to choose among. */
const mostHosts = 100;

/**
 * What a repository is, before anything is created or paid: read by a host, which keeps nothing of it. It sees the repository and its
 * token, so it is one that has the account's sites or databases; any other only if none of those is connected.
 */
export async function inspectSource(
  ctx: Ctx,
  { githubUrl, branch, gitToken, rootDir }: SourceInspect,
): Promise<SourceInspection> {
  const accountId = accountOf(ctx);
  const isOwn = sql<number>`(hosts.id IN (SELECT host_id FROM sites WHERE account_id = ${accountId}
    UNION SELECT host_id FROM databases WHERE account_id = ${accountId}))`;
  const connected = await ctx.db
    .select({ id: hosts.id, isOwn })
    .from(hosts)
    .where(and(eq(hosts.status, "ACTIVE"), isNotNull(hosts.connectedAt), isNull(hosts.offlineSince)))
    .orderBy(desc(isOwn))
    .limit(mostHosts);
  const near = connected.filter((one) => one.isOwn === connected[0]?.isOwn);
  const host = near[(ctx.random(1)[0] ?? 0) % near.length];
  if (!host) throw conflict("No host is connected that could read the repository. Try again in a minute.");
  const answer = await askThis<"source">(ctx, host.id, {
    kind: "source",
    accountId,
    source: { address: githubUrl, branch: branch ?? null, token: gitToken ?? null },
    rootDir: rootDir ?? null,
    timeoutMs,
  });
  return answer.found;
}
