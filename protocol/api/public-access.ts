import * as z from "zod";

const ipv4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;

const groups = (text: string): string[] => (text === "" ? [] : text.split(":"));

/** The bytes of an address in canonical form; null for any other text. */
function bytesOf(address: string): number[] | null {
  if (ipv4.test(address)) return address.split(".").map(Number);
  if (!/^[0-9a-f:]+$/.test(address) || !address.includes(":")) return null;
  try {
    // The canonical form is RFC 5952, which URL parsers produce.
    if (new URL(`http://[${address}]/`).hostname !== `[${address}]`) return null;
  } catch {
    return null;
  }
  const [head = "", tail] = address.split("::");
  const [left, right] = [groups(head), groups(tail ?? "")];
  const zeros = Array<string>(8 - left.length - right.length).fill("0");
  return [...left, ...zeros, ...right]
    .map((group) => Number.parseInt(group, 16))
    .flatMap((group) => [group >> 8, group & 255]);
}

/** An address or a network such as `203.0.113.0/24`, `198.51.100.7` or `2001:db8::/32`, with all host bits zero. */
export function isNetwork(text: string): boolean {
  const [address = "", prefix, ...rest] = text.split("/");
  const bytes = bytesOf(address);
  if (bytes === null || rest.length > 0) return false;
  if (prefix === undefined) return true;
  if (!/^(?:0|[1-9]\d{0,2})$/.test(prefix) || Number(prefix) > bytes.length * 8) return false;
  return bytes.every((byte, index) => {
    const kept = Math.min(8, Math.max(0, Number(prefix) - index * 8));
    return (byte & (0xff >> kept)) === 0;
  });
}

export const isIpv4Network = (text: string): boolean => !text.includes(":");

export const Network = z
  .string()
  .max(49)
  .refine(
    isNetwork,
    "an address or a network in its canonical form: 203.0.113.0/24, 198.51.100.7, 2001:db8::/32",
  );

export const maxAllowed = 32;
export const AllowList = z
  .array(Network)
  .refine((list) => list.length <= maxAllowed, `at most ${maxAllowed} entries`)
  .refine((list) => new Set(list).size === list.length, "each entry once")
  .meta({ maxItems: maxAllowed, uniqueItems: true });

export const PublicAccessPatch = z.strictObject({
  enabled: z.boolean(),
  allow: AllowList.optional().describe("If omitted, the list is unchanged."),
});
export type PublicAccessPatch = z.infer<typeof PublicAccessPatch>;

/** Access from the internet, with TLS, for the listed sources only. */
export const PublicAccess = z.object({
  enabled: z.boolean(),
  allow: z.array(z.string()).describe("Addresses and networks that may connect."),
  applied: z.boolean().describe("The host has applied these settings; until then the previous ones apply."),
  host: z.string().nullable().describe("The address to connect to; null until the host reports it."),
  port: z
    .number()
    .nullable()
    .describe("The port, which never changes once assigned; null until public access is first enabled."),
  error: z
    .string()
    .nullable()
    .describe("Why the host could not apply the settings. It retries automatically."),
});
export type PublicAccess = z.infer<typeof PublicAccess>;
