import { mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import * as z from "zod";
import { AwaitedCertificate, Certificate } from "../../protocol/agent/certificates.ts";
import { formatId } from "../../protocol/ids.ts";
import { isWildcard, wildcardOf } from "../../protocol/wildcards.ts";
import { writeAtomically } from "../write-atomically.ts";

/** The certificates that the control plane sent: one file, replaced as a whole, which the responder answers Caddy from. */
export const CertificateFile = z.object({
  /** Part of the address at which they are asked for, so that no other program on the host can ask. */
  addressKey: z.string().min(32),
  certificates: z.array(Certificate),
  awaited: AwaitedCertificate.nullable().default(null),
  /** Where Caddy keeps what it obtained itself; null: not known. */
  place: z
    .object({ volume: z.string(), folders: z.array(z.string()).readonly() })
    .nullable()
    .default(null),
});
export type CertificateFile = z.infer<typeof CertificateFile>;

/** Beside the routes. */
export const certificatesFileOf = (routesFile: string): string => `${dirname(routesFile)}/certificates.json`;

export function writeCertificates(file: string, contents: CertificateFile): void {
  const text = JSON.stringify(contents);
  try {
    if (readFileSync(file, "utf8") === text) return;
  } catch {
    // Not there yet, or damaged: it is replaced.
  }
  mkdirSync(dirname(file), { recursive: true });
  writeAtomically(file, text);
}

/**
 * The certificate for a name, with its key, as one PEM text; null: none that is valid, so Caddy obtains one.
 */
export function bundleFor(name: string, certificates: readonly Certificate[], now: Date): string | null {
  const wildcard = wildcardOf(name.toLowerCase());
  const found = certificates.find(
    (certificate) => certificate.name === wildcard && Date.parse(certificate.notAfter) > now.getTime(),
  );
  return found ? `${found.chain.trimEnd()}\n${found.key.trimEnd()}\n` : null;
}

/**
 * Whether the ingress may obtain a certificate for a name of this host: not below a wildcard whose certificate is there, and for few sites
 * while that is awaited.
 * @param sites the host's, by their ids
 */
export function mayObtain(
  name: string,
  sites: Readonly<Record<string, { hostnames: readonly string[] }>>,
  { certificates, awaited }: Pick<CertificateFile, "certificates" | "awaited">,
  now: Date,
): boolean {
  const siteWith = (isMeant: (hostname: string) => boolean) =>
    Object.keys(sites).filter((id) => sites[id]?.hostnames.some((one) => isMeant(one.toLowerCase())));
  const [siteId] = siteWith((hostname) => hostname === name);
  if (siteId === undefined || isWildcard(name) || bundleFor(name, certificates, now) !== null) return false;
  if (awaited?.name !== wildcardOf(name)) return true;
  const since = formatId("site", Date.parse(awaited.since), new Uint8Array(10));
  const waiting = siteWith((hostname) => wildcardOf(hostname) === awaited.name).filter((id) => id >= since);
  return siteId < since || waiting.toSorted().indexOf(siteId) < awaited.own;
}
