import * as z from "zod";
import { privateIpv4 } from "../../protocol/private-networks.ts";

const isIpv4 = /^\d+\.\d+\.\d+\.\d+$/;
/** Names reserved by RFC 6761, 6762, 8375 and, for private use, by ICANN. */
const privateNames = /(?:^|\.)(?:localhost|local|internal|lan|home\.arpa)\.?$/;

/** Names that no public name server knows. */
export const isPrivateName = (hostname: string): boolean =>
  !hostname.includes(".") || privateNames.test(hostname);

const numberOf = (ipv4: string): number =>
  ipv4.split(".").reduce((number, byte) => number * 256 + Number(byte), 0);
const isPrivate = (ipv4: string): boolean =>
  privateIpv4.some(([network, prefix]) => {
    const size = 2 ** (32 - prefix);
    return Math.floor(numberOf(ipv4) / size) === Math.floor(numberOf(network) / size);
  });

/** Whether the text is an IPv4 address that is not local, private or reserved. */
export const isPublicIpv4 = (text: string): boolean => z.ipv4().safeParse(text).success && !isPrivate(text);

/**
 * Why agents do not fetch from a repository's address, as far as the address itself shows; null: allowed. The agent
 * checks the resolved addresses. @param allowed hosts that the operator's agents fetch from regardless, as they are
 * written
 */
export function whyNotFetched(address: string, allowed: readonly string[]): string | null {
  const [host = ""] = address.split("/");
  if (allowed.includes(host)) return null;
  const url = URL.parse(`https://${host}`);
  if (!url) return `${host} is not a valid host: use the form host/owner/repo`;
  // Normalized as the agent does it: 0x7f.1 is 127.0.0.1.
  const { hostname, port } = url;
  if (port !== "") return `Git hosts are supported on port 443 only: remove the port from ${host}`;
  const isOwn = isIpv4.test(hostname) ? isPrivate(hostname) : isPrivateName(hostname);
  return isOwn ? `${host} is not a public address: use a public Git host` : null;
}
