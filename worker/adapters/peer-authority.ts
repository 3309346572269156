/** The installation's own authority, by which its hosts know each other. Both texts are PEM; the key is PKCS #8. */
export type PeerAuthority = { certificate: string; key: string };

const curve = { name: "ECDSA", namedCurve: "P-256" };
const signing = { ...curve, hash: "SHA-256" };
const day = 24 * 60 * 60_000;
const authorityDays = 3650;
/** A host receives a new one with each message about the other hosts, and needs it only while sites move. */
const hostDays = 7;

/** Loaded at the first certificate. */
async function x509() {
  await import("reflect-metadata");
  return import("@peculiar/x509");
}

/** Clocks differ. */
const validity = (now: Date, days: number) => ({
  notBefore: new Date(now.getTime() - day),
  notAfter: new Date(now.getTime() + days * day),
});

export async function makePeerAuthority(now: Date): Promise<PeerAuthority & { endsAt: Date }> {
  const { BasicConstraintsExtension, KeyUsageFlags, KeyUsagesExtension, PemConverter, ...library } =
    await x509();
  const keys = await crypto.subtle.generateKey(curve, true, ["sign", "verify"]);
  if (!("privateKey" in keys)) throw new Error("No pair of keys was generated");
  const certificate = await library.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: ["Berth hosts"] }],
    keys,
    signingAlgorithm: signing,
    ...validity(now, authorityDays),
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    ],
  });
  const pkcs8 = (await crypto.subtle.exportKey("pkcs8", keys.privateKey)) as ArrayBuffer;
  return {
    certificate: certificate.toString("pem"),
    key: PemConverter.encode(pkcs8, "PRIVATE KEY"),
    endsAt: certificate.notAfter,
  };
}

/**
 * A host's certificate for either end of a connection; its common name is the host's id.
 * @param publicKey SubjectPublicKeyInfo of a P-256 key, base64. @throws if it is none
 */
export async function issuePeerCertificate(
  authority: PeerAuthority,
  { hostId, publicKey }: { hostId: string; publicKey: string },
  now: Date,
): Promise<string> {
  const { BasicConstraintsExtension, ExtendedKeyUsage, ExtendedKeyUsageExtension, ...library } = await x509();
  const [pkcs8 = new ArrayBuffer(0)] = library.PemConverter.decode(authority.key);
  const spki = Buffer.from(publicKey, "base64");
  const certificate = await library.X509CertificateGenerator.create({
    subject: [{ CN: [hostId] }],
    issuer: new library.X509Certificate(authority.certificate).subjectName,
    publicKey: await crypto.subtle.importKey("spki", spki, curve, true, ["verify"]),
    signingKey: await crypto.subtle.importKey("pkcs8", pkcs8, curve, false, ["sign"]),
    signingAlgorithm: signing,
    ...validity(now, hostDays),
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new library.KeyUsagesExtension(library.KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
    ],
  });
  return certificate.toString("pem");
}
