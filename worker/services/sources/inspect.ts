import { and, eq, isNotNull, isNull } from "drizzle-orm";
import type { SourceInspect, SourceInspection } from "../../../protocol/api/sources.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { hosts } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { askThis } from "../running/ask-host.ts";

/** A usual repository takes a second; a Git host that is slow is given up before a browser gives up. */
const timeoutMs = 15_000;
/** As many are enough to choose among. */
const mostHosts = 100;

/** What a repository is, before anything is created or paid: read by any host, which keeps nothing of it. */
export async function inspectSource(
  ctx: Ctx,
  { githubUrl, branch, gitToken, rootDir }: SourceInspect,
): Promise<SourceInspection> {
  const connected = await ctx.db
    .select({ id: hosts.id })
    .from(hosts)
    .where(and(eq(hosts.status, "ACTIVE"), isNotNull(hosts.connectedAt), isNull(hosts.offlineSince)))
    .limit(mostHosts);
  const host = connected[(ctx.random(1)[0] ?? 0) % connected.length];
  if (!host) throw conflict("No host is connected that could read the repository. Try again in a minute.");
  const answer = await askThis<"source">(ctx, host.id, {
    kind: "source",
    accountId: accountOf(ctx),
    source: { address: githubUrl, branch: branch ?? null, token: gitToken ?? null },
    rootDir: rootDir ?? null,
    timeoutMs,
  });
  return answer.found;
}
