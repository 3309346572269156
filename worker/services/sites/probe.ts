import type { ById } from "../../../protocol/api/common.ts";
import type { SiteProbe, SiteProbed } from "../../../protocol/api/diagnosis.ts";
import type { Ctx } from "../../ctx.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { siteUrl } from "../../domain/slug.ts";
import { idIn, ownedWith } from "../owned.ts";
import { verifiedNames } from "./ingress-change.ts";
import { siteById } from "./owned.ts";

const maxRequests = 6;

/**
 * Requests the site's own address or one of its verified domains, as a visitor does. No other host is ever asked,
 * whatever a redirect says, and no body is shown.
 */
export async function probeSite(
  ctx: Ctx,
  { id: siteId, path, domain }: ById & SiteProbe,
): Promise<SiteProbed> {
  const id = idIn("site", siteId);
  const { owned: site, verified } = await ownedWith(ctx, siteById(ctx, id), {
    verified: verifiedNames(ctx, id),
  });
  const own = new URL(siteUrl(ctx.config.SITES_ORIGIN, site.slug));
  const names = verified.map(({ name }) => name);
  if (domain !== undefined && !names.includes(domain))
    throw invalid("domain", "not a verified domain of this site");
  if (site.status === "PENDING")
    throw conflict("The site has not been paid for, so nothing answers at its address yet.");
  const first = new URL(path, own);
  if (domain !== undefined) first.hostname = domain;
  const probed = await follow(ctx, first, new Set([own.hostname, ...names]), own.port);
  const isServed =
    site.currentDeploymentId !== null && site.status !== "STOPPED" && site.status !== "SUSPENDED";
  return probed.error !== null || isServed
    ? probed
    : { ...probed, error: "no version of the site is in service, so this answer is its host's own" };
}

/** @param port of the service's own addresses: no other is asked */
export async function follow(
  ctx: Pick<Ctx, "fetchOnce" | "now">,
  first: URL,
  allowed: ReadonlySet<string>,
  port: string,
): Promise<SiteProbed> {
  const requests: SiteProbed["requests"] = [];
  let url = first;
  for (;;) {
    const began = ctx.now().getTime();
    const ttfbMs = () => ctx.now().getTime() - began;
    let answer;
    try {
      answer = await ctx.fetchOnce(url.href);
    } catch (error) {
      requests.push({ url: url.href, status: null, ttfbMs: ttfbMs(), location: null });
      const reason = (error as Error).name === "TimeoutError" ? "no answer within 10 s" : reasonOf(error);
      return { reachable: false, status: null, ttfbMs: null, tls: false, error: reason, requests };
    }
    const { status, location } = answer;
    const last = { url: url.href, status, ttfbMs: ttfbMs(), location };
    requests.push(last);
    const next = location === null ? null : parsed(location, url);
    const isOwn = next !== null && allowed.has(next.hostname) && /^https?:$/.test(next.protocol);
    // Other ports of a name could be other services of its host.
    const isUsual = next !== null && (next.port === "" || next.port === port);
    if (!isOwn || !isUsual || requests.length === maxRequests)
      return {
        reachable: true,
        status,
        ttfbMs: last.ttfbMs,
        tls: url.protocol === "https:",
        error: requests.length === maxRequests && isOwn ? "too many redirects" : null,
        requests,
      };
    url = next;
  }
}

const parsed = (location: string, base: URL): URL | null => {
  const url = URL.parse(location, base);
  if (url) [url.username, url.password, url.hash] = ["", "", ""];
  return url;
};

const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message.slice(0, 300) : "no answer";
