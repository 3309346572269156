import { makeAuthority } from "../../agent/databases/certificates.ts";
import type { PublicAccess } from "../../agent/databases/public-access.ts";

/** For a host without public databases; their servers have certificates all the same. */
export function closedAccess(agentId: string): PublicAccess {
  const authority = makeAuthority(agentId, new Date());
  return {
    authority: () => authority,
    address: () => Promise.resolve("192.0.2.1"),
    set: () => false,
    has: () => false,
    publicPorts: () => Promise.resolve([]),
  };
}
