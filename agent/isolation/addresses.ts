import { isIP } from "node:net";

/** A destination that the operator lets tenants reach: an address or a network, entirely or on one TCP port. */
export type Destination = { family: 4 | 6; network: string; port: number | null };

const form =
  /^(?:\[(?<six>[^\]]+)\]|(?<plain>[^[\]:]+|[0-9a-fA-F:]*:[0-9a-fA-F:/.]*))(?::(?<port>\d{1,5}))?$/;

/** Parses `10.0.0.5`, `10.0.0.0/24`, `10.0.0.5:3128`, `fd00::/64`, `[fd00::1]:3128`. @returns null for anything else */
export function parseDestination(text: string): Destination | null {
  const groups = form.exec(text)?.groups;
  const network = groups?.["six"] ?? groups?.["plain"] ?? "";
  const [address = "", bits, ...rest] = network.split("/");
  const family = isIP(address);
  const port = groups?.["port"] === undefined ? null : Number(groups["port"]);
  if ((family !== 4 && family !== 6) || rest.length > 0) return null;
  if (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)))
    return null;
  if (port !== null && (port < 1 || port > 65535)) return null;
  return { family, network, port };
}

/** The name servers of a resolv.conf that containers query directly; Docker queries loopback ones on their behalf. */
export function nameservers(...files: string[]): string[] {
  const found = files.flatMap((text) =>
    [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)].map(([, address = ""]) => address),
  );
  return [...new Set(found)].filter(
    (address) => isIP(address) !== 0 && !address.startsWith("127.") && address !== "::1",
  );
}
