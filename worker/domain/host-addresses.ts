import { isPublicIpv4 } from "./git-host.ts";

type Addressed = { ipv4: string | null; ipv6: string | null; connectedFrom: string | null };

/** Where visitors reach a host, as the operator says; if he does not, at the public IPv4 address it connects from. */
export const addressesOf = (host: Addressed): { ipv4: string | null; ipv6: string | null } => ({
  ipv4:
    host.ipv4 ??
    (host.connectedFrom !== null && isPublicIpv4(host.connectedFrom) ? host.connectedFrom : null),
  ipv6: host.ipv6,
});

/** Where other hosts pass on requests for sites that have moved to this one; null: nowhere. */
export function peerPlaceOf(
  host: Addressed & { peerPort: number | null },
): { address: string; port: number } | null {
  const { ipv4, ipv6 } = addressesOf(host);
  const address = ipv4 ?? ipv6;
  return address === null || host.peerPort === null ? null : { address, port: host.peerPort };
}

/** Why they do not; null: they do, or its agent has never connected. */
export function forwardingNotice(
  host: Addressed & { peerPort: number | null; connectedAt: Date | null },
): string | null {
  if (host.connectedAt === null || peerPlaceOf(host)) return null;
  const consequence = "so for some minutes after a move their copies of its sites answer there";
  return host.peerPort === null
    ? `Its agent accepts no requests from other hosts, ${consequence}. Update the agent.`
    : `Other hosts do not know its address, ${consequence}. Set ipv4 or ipv6.`;
}
