import { isPublicIpv4 } from "./git-host.ts";

/** Where visitors reach a host, as the operator says; if he does not, at the public IPv4 address it connects from. */
export const addressesOf = (host: {
  ipv4: string | null;
  ipv6: string | null;
  connectedFrom: string | null;
}): { ipv4: string | null; ipv6: string | null } => ({
  ipv4:
    host.ipv4 ??
    (host.connectedFrom !== null && isPublicIpv4(host.connectedFrom) ? host.connectedFrom : null),
  ipv6: host.ipv6,
});
