import { isIP } from "node:net";

/** A destination that the operator lets tenants reach: an address or a network, whole or one TCP port of it. */
export type Destination = { family: 4 | 6; network: string; port: number | null };

const form =
  /^(?:\[(?<six>[^\]]+)\]|(?<plain>[^[\]:]+|[0-9a-fA-F:]*:[0-9a-fA-F:/.]*))(?::(?<port>\d{1,5}))?$/;

/** `10.0.0.5`, `10.0.0.0/24`, `10.0.0.5:3128`, `fd00::/64`, `[fd00::1]:3128`. @returns null for what is none of these */
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

/** The name servers of a resolv.conf that containers ask by themselves; Docker asks the host's own in their stead. */
export function nameservers(...files: string[]): string[] {
  const found = files.flatMap((text) =>
    [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)].map(([, address = ""]) => address),
  );
  return [...new Set(found)].filter(
    (address) => isIP(address) !== 0 && !address.startsWith("127.") && address !== "::1",
  );
}
