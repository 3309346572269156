type Range = { from: number; to: number };

function rangeOf(subnet: string): Range | null {
  const [, address = "", bits = ""] = /^(\d+\.\d+\.\d+\.\d+)\/(\d+)$/.exec(subnet) ?? [];
  if (address === "") return null;
  const size = 2 ** (32 - Number(bits));
  const at = address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
  const from = at - (at % size);
  return { from, to: from + size - 1 };
}

/** A /24 of 172.16.0.0/12 that overlaps none of these; null if there is none. */
export function freeSubnet(taken: readonly string[]): string | null {
  const ranges = taken.flatMap((subnet) => rangeOf(subnet) ?? []);
  for (let second = 16; second < 32; second++)
    for (let third = 0; third < 256; third++) {
      const subnet = `172.${second}.${third}.0/24`;
      const own = rangeOf(subnet);
      if (own && ranges.every(({ from, to }) => to < own.from || from > own.to)) return subnet;
    }
  return null;
}

/** Parses hexadecimal in little-endian byte order, that of all supported hosts. */
const bytesOf = (hex: string): number[] =>
  (hex.match(/../g) ?? []).toReversed().map((byte) => Number.parseInt(byte, 16));

const ones = (byte: number): number => byte.toString(2).replaceAll("0", "").length;

/** The subnets that the host has routes to, from the text of /proc/net/route, without the default route. */
export function routedSubnets(routes: string): string[] {
  return routes.split("\n").flatMap((line) => {
    const [, destination = "", , , , , , mask = ""] = line.split("\t");
    if (![destination, mask].every((one) => /^[0-9A-F]{8}$/.test(one)) || mask === "00000000") return [];
    const bits = bytesOf(mask).reduce((sum, byte) => sum + ones(byte), 0);
    return [`${bytesOf(destination).join(".")}/${bits}`];
  });
}
