import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  X509Certificate,
  type KeyObject,
} from "node:crypto";
import { isIP } from "node:net";

// A private authority and the certificates of its servers: P-256 keys, ECDSA with SHA-256.

export type Pair = { key: string; certificate: string };

const day = 24 * 60 * 60_000;
const authorityDays = 3650;
/** Clients accept up to 398 days. */
const serverDays = 397;
/** The remaining validity at which a certificate is renewed; the control plane asks for renewal later than that. */
const renewDays = 120;

const ecdsa = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

/** Loaded with the first certificate: it is large, and most starts of an agent need none. */
const loadX509 = () => import("./x509.ts");

const newKey = () => generateKeyPairSync("ec", { namedCurve: "P-256" });
const pemOf = (key: KeyObject) => key.export({ type: "pkcs8", format: "pem" }).toString();
const signs = (key: KeyObject) => key.toCryptoKey(ecdsa, false, ["sign"]);
const verifies = (key: KeyObject) => key.toCryptoKey(ecdsa, true, ["verify"]);
/** Clocks differ. */
const validity = (now: Date, days: number) => ({
  notBefore: new Date(now.getTime() - day),
  notAfter: new Date(now.getTime() + days * day),
});

/** The authority of one host, which its databases' clients verify servers with. */
export async function makeAuthority(commonName: string, now: Date): Promise<Pair> {
  const x509 = await loadX509();
  const pair = newKey();
  const [privateKey, publicKey] = [signs(pair.privateKey), verifies(pair.publicKey)];
  const { keyCertSign, cRLSign } = x509.KeyUsageFlags;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [commonName] }],
    keys: { privateKey, publicKey },
    signingAlgorithm: ecdsa,
    ...validity(now, authorityDays),
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(keyCertSign | cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(publicKey),
    ],
  });
  return { key: pemOf(pair.privateKey), certificate: `${certificate.toString("pem")}\n` };
}

export async function makeServerCertificate(
  authority: Pair,
  names: readonly string[],
  now: Date,
): Promise<Pair> {
  const x509 = await loadX509();
  const issuer = new x509.X509Certificate(authority.certificate);
  const pair = newKey();
  const publicKey = verifies(pair.publicKey);
  const certificate = await x509.X509CertificateGenerator.create({
    // A common name has at most 64 characters; clients match the alternative names.
    subject: [{ CN: ["Berth database"] }],
    issuer: issuer.subjectName,
    publicKey,
    signingKey: signs(createPrivateKey(authority.key)),
    signingAlgorithm: ecdsa,
    ...validity(now, serverDays),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) === 0 ? "dns" : "ip", value })),
      ),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
      // Strict clients find the signing key by the key identifier in the authority's own certificate.
      new x509.AuthorityKeyIdentifierExtension(
        issuer.getExtension(x509.SubjectKeyIdentifierExtension)?.keyId ?? "",
      ),
    ],
  });
  // Includes the authority: some clients accept an unknown one but not an incomplete chain.
  return {
    key: pemOf(pair.privateKey),
    certificate: `${certificate.toString("pem")}\n${authority.certificate}`,
  };
}

const endOf = (pem: string): Date => new Date(new X509Certificate(pem).validTo);

/** Whether a server can keep its certificate: issued by this authority, for these names, with months left. */
export function isFit(certificate: string, authority: Pair, names: readonly string[], now: Date): boolean {
  try {
    const found = new X509Certificate(certificate);
    return (
      found.verify(createPublicKey(authority.certificate)) &&
      names.every((name) => (isIP(name) ? found.checkIP(name) : found.checkHost(name)) !== undefined) &&
      endOf(certificate).getTime() > now.getTime() + renewDays * day
    );
  } catch {
    return false;
  }
}

/** Whether the authority outlives the certificates that it issues now. */
export const isAuthorityFit = (certificate: string, now: Date): boolean =>
  endOf(certificate).getTime() > now.getTime() + (serverDays + renewDays) * day;

export const endsAtOf = (certificate: string): string => endOf(certificate).toISOString();
