import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
  X509Certificate,
  type KeyObject,
} from "node:crypto";
import { isIP } from "node:net";

// X.509 (RFC 5280) as far as a private authority and its servers need it: P-256 keys, ECDSA with SHA-256.

export type Pair = { key: string; certificate: string };

const day = 24 * 60 * 60_000;
const authorityDays = 3650;
/** No client asks for less than 398. */
const serverDays = 397;
/** What is left when the next one is made: earlier than the control plane asks for it. */
const renewDays = 120;

const tlv = (tag: number, ...parts: Buffer[]): Buffer => {
  const body = Buffer.concat(parts);
  const size = body.length;
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
};
const sequence = (...parts: Buffer[]) => tlv(0x30, ...parts);
const oid = (hex: string) => tlv(0x06, Buffer.from(hex, "hex"));
const bits = (bytes: Buffer) => tlv(0x03, Buffer.from([0]), bytes);
/** Years until 2049 have two digits. */
const time = (at: Date) => {
  const text = at.toISOString().replace(/[-:T]|\.\d+/g, "");
  return at.getUTCFullYear() < 2050 ? tlv(0x17, Buffer.from(text.slice(2))) : tlv(0x18, Buffer.from(text));
};
const named = (commonName: string) =>
  sequence(tlv(0x31, sequence(oid("550403"), tlv(0x0c, Buffer.from(commonName)))));
const extension = (id: string, critical: boolean, value: Buffer) =>
  sequence(oid(id), ...(critical ? [tlv(0x01, Buffer.from([0xff]))] : []), tlv(0x04, value));

const ecdsaWithSha256 = sequence(oid("2a8648ce3d040302"));
const basicConstraints = (isAuthority: boolean) =>
  extension("551d13", true, sequence(...(isAuthority ? [tlv(0x01, Buffer.from([0xff]))] : [])));
/** keyCertSign and cRLSign, or digitalSignature. */
const keyUsage = (isAuthority: boolean) =>
  extension("551d0f", true, tlv(0x03, Buffer.from(isAuthority ? [1, 0x06] : [7, 0x80])));
const serverAuthentication = extension("551d25", false, sequence(oid("2b06010505070301")));
const alternativeNames = (names: readonly string[]) =>
  extension(
    "551d11",
    false,
    sequence(
      ...names.map((name) =>
        isIP(name) === 4 ? tlv(0x87, Buffer.from(name.split(".").map(Number))) : tlv(0x82, Buffer.from(name)),
      ),
    ),
  );

const keyIdOf = (key: KeyObject) =>
  createHash("sha1")
    .update(key.export({ type: "spki", format: "der" }))
    .digest();
/** By which strict clients find the key that signed. */
const keyIds = (subject: KeyObject, issuer: KeyObject) => [
  extension("551d0e", false, tlv(0x04, keyIdOf(subject))),
  extension("551d23", false, sequence(tlv(0x80, keyIdOf(issuer)))),
];

type Request = {
  commonName: string;
  issuer: string;
  days: number;
  now: Date;
  subjectKey: KeyObject;
  signingKey: KeyObject;
  issuerKey: KeyObject;
  extensions: Buffer[];
};

function certify({
  commonName,
  issuer,
  days,
  now,
  subjectKey,
  signingKey,
  issuerKey,
  extensions,
}: Request): string {
  // Positive, and without a zero in front.
  const serial = Buffer.concat([Buffer.from([0x40]), randomBytes(16)]);
  const body = sequence(
    tlv(0xa0, tlv(0x02, Buffer.from([2]))),
    tlv(0x02, serial),
    ecdsaWithSha256,
    named(issuer),
    // Clocks differ.
    sequence(time(new Date(now.getTime() - day)), time(new Date(now.getTime() + days * day))),
    named(commonName),
    subjectKey.export({ type: "spki", format: "der" }),
    tlv(0xa3, sequence(...keyIds(subjectKey, issuerKey), ...extensions)),
  );
  const der = sequence(body, ecdsaWithSha256, bits(sign("sha256", body, signingKey)));
  return new X509Certificate(der).toString();
}

const newKey = () => generateKeyPairSync("ec", { namedCurve: "P-256" });
const pemOf = (key: KeyObject) => key.export({ type: "pkcs8", format: "pem" }).toString();

/** Of one host, which its databases' servers are verified with. */
export function makeAuthority(name: string, now: Date): Pair {
  const { privateKey, publicKey } = newKey();
  const certificate = certify({
    commonName: name,
    issuer: name,
    days: authorityDays,
    now,
    subjectKey: publicKey,
    signingKey: privateKey,
    issuerKey: publicKey,
    extensions: [basicConstraints(true), keyUsage(true)],
  });
  return { key: pemOf(privateKey), certificate };
}

export function makeServerCertificate(authority: Pair, names: readonly string[], now: Date): Pair {
  const { privateKey, publicKey } = newKey();
  const certificate = certify({
    // At most 64 characters; what it is for is in the alternative names.
    commonName: "Berth database",
    issuer: commonNameOf(authority.certificate),
    days: serverDays,
    now,
    subjectKey: publicKey,
    signingKey: createPrivateKey(authority.key),
    issuerKey: createPublicKey(authority.certificate),
    extensions: [basicConstraints(false), keyUsage(false), serverAuthentication, alternativeNames(names)],
  });
  // With its authority behind it: some clients take one that is unknown to them, but not one that is missing.
  return { key: pemOf(privateKey), certificate: certificate + authority.certificate };
}

const commonNameOf = (pem: string): string => /^CN=(.*)$/m.exec(new X509Certificate(pem).subject)?.[1] ?? "";

const endOf = (pem: string): Date => new Date(new X509Certificate(pem).validTo);

/** A server goes on with it: made by this authority, for these names, with months left. */
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

/** Its own servers' certificates end before it does. */
export const isAuthorityFit = (certificate: string, now: Date): boolean =>
  endOf(certificate).getTime() > now.getTime() + (serverDays + renewDays) * day;

export const endsAtOf = (certificate: string): string => endOf(certificate).toISOString();
