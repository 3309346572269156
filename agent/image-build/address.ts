import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";
import { privateIpv4 } from "../../protocol/private-networks.ts";
import { JobError } from "../job.ts";

/** Addresses no tenant's Git host may have. */
// Two lists: a rule for mapped addresses would match every IPv4 address in one.
const refused = { ipv4: new BlockList(), ipv6: new BlockList() };
for (const [network, prefix] of privateIpv4) refused.ipv4.addSubnet(network, prefix, "ipv4");
for (const [network, prefix] of [
  ["::", 96],
  ["::ffff:0:0", 96],
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["2002::", 16],
  ["fc00::", 7],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
] as const)
  refused.ipv6.addSubnet(network, prefix, "ipv6");

export function isPublicAddress(address: string): boolean {
  const version = isIP(address);
  if (version === 0) return false;
  const family = version === 6 ? "ipv6" : "ipv4";
  return !refused[family].check(address, family);
}

/** One public address of the host, to be pinned for the whole fetch. @throws JobError */
export async function publicAddressOf(hostname: string): Promise<string> {
  const found = isIP(hostname)
    ? [{ address: hostname }]
    : await lookup(hostname, { all: true }).catch(() => []);
  if (found.length === 0)
    throw new JobError(`The Git host ${hostname} was not found: check the repository's address.`);
  const allowed = found.find(({ address }) => isPublicAddress(address));
  if (!allowed || found.some(({ address }) => !isPublicAddress(address)))
    throw new JobError(`The Git host ${hostname} is not on a public address: use a public one.`);
  return allowed.address;
}
