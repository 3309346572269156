import type { ById } from "../../../protocol/api/common.ts";
import type { LogFound, LogSearchQuery } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../ctx.ts";
import { siteLogLine } from "../../domain/site-log-line.ts";
import { askHostOf } from "./ask-host.ts";
import { siteAndMasks } from "./masks.ts";

const timeoutMs = 15_000;

/** The newest lines with a text of all that the site's host keeps, also of containers that are gone. */
export async function searchSiteLogs(
  ctx: Ctx,
  { id, text, from, to, limit }: ById & LogSearchQuery,
): Promise<LogFound> {
  const { site, masks } = await siteAndMasks(ctx, id);
  const answer = await askHostOf<"searchLog">(ctx, site, {
    kind: "searchLog",
    siteId: site.id,
    text,
    after: from ?? null,
    before: to ?? null,
    limit,
    masks,
    timeoutMs,
  });
  return { data: (answer?.lines ?? []).map(siteLogLine), complete: answer?.complete ?? true };
}
