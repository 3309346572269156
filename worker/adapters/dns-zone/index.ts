import type { Config } from "../../config.ts";
import { cloudflareZone } from "./cloudflare.ts";
import { powerDnsZone } from "./powerdns.ts";
import type { Zone } from "./zone.ts";

/** The domain below which sites have their own names. */
export const sitesDomain = (config: Config): string => new URL(config.SITES_ORIGIN).hostname;

/** The name of the certificate of all of them. */
export const sitesWildcard = (config: Config): string => `*.${sitesDomain(config)}`;

/** The zone that follows the sites; null: the operator maintains it. */
export function zoneOf(config: Config): Zone | null {
  const domain = sitesDomain(config);
  // Two installations may share a zone, but not the domain of their sites.
  const owner = `Managed by Berth for ${domain}`.slice(0, 100);
  // The configuration refuses a provider without its settings.
  const {
    CLOUDFLARE_API_URL,
    CLOUDFLARE_API_TOKEN: token = "",
    CLOUDFLARE_ZONE_ID: zoneId = "",
    POWERDNS_API_URL: apiUrl = "",
    POWERDNS_API_KEY: apiKey = "",
    POWERDNS_SERVER_ID: serverId,
    POWERDNS_ZONE: zone = domain,
  } = config;
  switch (config.DNS_PROVIDER) {
    case "none":
      return null;
    case "cloudflare":
      return cloudflareZone({ apiUrl: CLOUDFLARE_API_URL, token, zoneId, domain, owner });
    case "powerdns":
      return powerDnsZone({ apiUrl, apiKey, serverId, zone, domain, owner });
  }
}
