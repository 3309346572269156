/**
 * The key under which a limit counts a client's address. An IPv6 address counts as its /64, the smallest network a
 * line is assigned, so that a client cannot multiply its limits. Anything else is used as is.
 */
export function countedAs(address: string): string {
  if (!address.includes(":")) return address;
  let canonical: string;
  try {
    canonical = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  } catch {
    return address;
  }
  // An IPv4-mapped IPv6 address.
  if (canonical.startsWith("::ffff:")) return canonical;
  const [head = "", tail = ""] = canonical.split("::");
  const left = groupsOf(head);
  const right = groupsOf(tail);
  const zeros = Array<string>(8 - left.length - right.length).fill("0");
  return `${[...left, ...zeros, ...right].slice(0, 4).join(":")}::/64`;
}

const groupsOf = (part: string): string[] => (part === "" ? [] : part.split(":"));
