import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";

/** The host reads its ingress's log every second. */
const pausesMs = [1200, 2000];

/**
 * Whether a request for this name arrives at the site's host, as by way of its owner's CDN. The path begins as those by which certificate
 * authorities validate, which CDNs pass on; its end is known to nobody before, and is looked for in the log of the host.
 */
export async function reaches(
  ctx: Ctx,
  { id, hostId }: { id: Id<"site">; hostId: Id<"host"> },
  name: string,
): Promise<boolean> {
  const path = `/.well-known/acme-challenge/berth-${Buffer.from(ctx.random(16)).toString("hex")}`;
  try {
    await ctx.fetchOnce(`http://${name}${path}`);
  } catch {
    return false;
  }
  for (const pauseMs of pausesMs) {
    await scheduler.wait(pauseMs);
    const answer = await ctx.questions.ask(hostId, {
      kind: "requests",
      siteId: id,
      filters: { path },
      limit: 1,
      place: null,
      follow: false,
    });
    if (answer.kind !== "requests") return false;
    if (answer.requests.some(({ host }) => host === name)) return true;
  }
  return false;
}
