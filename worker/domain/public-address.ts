import * as z from "zod";
import { isPrivateName, isPublicIpv4 } from "./git-host.ts";

/**
 * Whether it is a global unicast address that leads to no other network inside: of 2000::/3, without the special blocks
 * 2001::/23 (Teredo and others), 2001:db8::/32 (documentation), 2002::/16 (6to4) and 3fff::/20 (IANA's registry of special
 * addresses).
 */
export function isPublicIpv6(text: string): boolean {
  if (!z.ipv6().safeParse(text).success || text.includes(".")) return false;
  // `::` stands for at least one group, so that a second one which is not before it is 0.
  const [first = 0, second = 0] = (text.split("::")[0] ?? "").split(":").map((group) => parseInt(group, 16));
  if (first >> 13 !== 1) return false;
  if (first === 0x2001 && (second >> 9 === 0 || second === 0xdb8)) return false;
  return first !== 0x2002 && !(first === 0x3fff && second >> 12 === 0);
}

export const arePublic = ({ v4, v6 }: { v4: readonly string[]; v6: readonly string[] }): boolean =>
  v4.every(isPublicIpv4) && v6.every(isPublicIpv6);

/** Why nothing is sent to an address, as far as the address itself shows; null: its name is to be resolved. */
export function whyNotSent(address: string): string | null {
  const url = URL.parse(address);
  if (url?.protocol !== "https:") return "use an address that begins with https://";
  if (url.username !== "" || url.password !== "")
    return "an address with a user name or password is not supported";
  if (url.port !== "") return "only the default port (443) is supported: remove the port";
  const { hostname } = url;
  if (/^[\d.]+$/.test(hostname) || hostname.startsWith("[")) return "use a name instead of an IP address";
  if (isPrivateName(hostname)) return `${hostname} is not a public name`;
  return null;
}
