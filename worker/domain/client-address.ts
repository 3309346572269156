/**
 * What a limit counts a client's address as: an IPv6 address as its /64, which is the least a line is given, so that nobody has
 * as many limits as addresses. Anything else as it is.
 */
export function countedAs(address: string): string {
  if (!address.includes(":")) return address;
  let canonical: string;
  try {
    canonical = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  } catch {
    return address;
  }
  // IPv4 in the form of IPv6.
  if (canonical.startsWith("::ffff:")) return canonical;
  const [head = "", tail = ""] = canonical.split("::");
  const left = groupsOf(head);
  const right = groupsOf(tail);
  const zeros = Array<string>(8 - left.length - right.length).fill("0");
  return `${[...left, ...zeros, ...right].slice(0, 4).join(":")}::/64`;
}

const groupsOf = (part: string): string[] => (part === "" ? [] : part.split(":"));
