import { makeAuthority } from "../../agent/databases/certificates.ts";
import type { PublicAccess } from "../../agent/databases/public-access.ts";

/** Of a host whose databases nobody reaches from outside; their servers have certificates all the same. */
export function closedAccess(agentId: string): PublicAccess {
  const authority = makeAuthority(agentId, new Date());
  return {
    authority: () => authority,
    address: () => Promise.resolve("192.0.2.1"),
    set: () => false,
    has: () => false,
    ways: () => Promise.resolve([]),
  };
}
