import { createPrivateKey, X509Certificate } from "node:crypto";
import {
  accessSync,
  chownSync,
  constants,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import tls from "node:tls";
import type { Certificate } from "../../protocol/agent/certificates.ts";
import type { Engine } from "../docker/engine.ts";
import { label } from "../docker/labels.ts";
import { ingressVolume } from "./container.ts";
import { writeAtomically } from "../write-atomically.ts";

/** Caddy's own, unless it is told another. */
const letsEncrypt = "https://acme-v02.api.letsencrypt.org/directory";

/** Where Caddy keeps what it obtained itself: a folder of this host, and folders below it as certmagic names them. */
export type Place = { volume: string; folders: readonly string[] };
/** `roots`: of the authorities that browsers trust; null: from one of the operator's own. */
export type Storage = Place & { roots: readonly X509Certificate[] | null };

let publicRoots: X509Certificate[] | undefined;
/** Reading them takes a tenth of a second. */
const rootsOfBrowsers = () => (publicRoots ??= tls.rootCertificates.map((pem) => new X509Certificate(pem)));

/** null: there is no such volume. @param directory of the certificate authority */
export async function caddyPlace(
  engine: Pick<Engine, "volumes">,
  agentId: string,
  directory?: string,
): Promise<Place | null> {
  const volumes = await engine.volumes({ [label.ingress]: agentId });
  const found = volumes.find(({ name }) => name === ingressVolume(agentId));
  const folders = ["caddy", "certificates", issuerOf(directory ?? letsEncrypt)];
  return found ? { volume: found.folder, folders } : null;
}

/** As `caddyPlace`. */
export async function caddyStorage(
  engine: Pick<Engine, "volumes">,
  agentId: string,
  directory?: string,
): Promise<Storage | null> {
  const place = await caddyPlace(engine, agentId, directory);
  return place && { ...place, roots: directory === undefined ? rootsOfBrowsers() : null };
}

/** `https://ca.example:1/dir` → `ca.example-1-dir`. */
function issuerOf(directory: string): string {
  const { host, pathname } = new URL(directory);
  const path = pathname.replaceAll("/", "-").replace(/^-+|-+$/g, "");
  return [host.replaceAll(":", "-"), path].filter(Boolean).join("-");
}

/** A name that is no way to another folder. */
const isPlain = (name: string): boolean => /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)+$/.test(name);

/** The certificate of a name that Caddy obtained, with its key; null: there is none. */
export function readObtained({ volume, folders }: Place, name: string): Certificate | null {
  if (!isPlain(name)) return null;
  const read = (ending: string) => readFileSync(join(volume, ...folders, name, `${name}.${ending}`), "utf8");
  try {
    const chain = read("crt");
    return { name, chain, key: read("key"), notAfter: new X509Certificate(chain).validToDate.toISOString() };
  } catch {
    return null;
  }
}

/** Whether Caddy has a valid certificate of this name; null: that cannot be seen from here. */
export function isObtained(place: Place, name: string, now: Date): boolean | null {
  try {
    accessSync(place.volume, constants.R_OK | constants.X_OK);
  } catch {
    return null;
  }
  const found = readObtained(place, name);
  return found !== null && Date.parse(found.notAfter) > now.getTime();
}

/** As `putObtained`, for all of them: one that is refused keeps out no other. @throws AggregateError afterwards */
export async function giveCaddy(
  engine: Pick<Engine, "volumes">,
  agentId: string,
  directory: string | undefined,
  certificates: readonly Certificate[],
): Promise<void> {
  const storage = await caddyStorage(engine, agentId, directory);
  if (!storage) throw new Error("The ingress has no volume for its certificates");
  const errors: unknown[] = [];
  for (const certificate of certificates)
    try {
      putObtained(storage, certificate);
    } catch (error) {
      errors.push(error);
    }
  if (errors.length > 0) throw new AggregateError(errors, errors.map(String).join("; "));
}

/** When it ends. Another host says what it likes of it, and Caddy would serve what it finds for good. @throws Error */
function endOf({ name, chain, key }: Certificate, { roots }: Storage): Date {
  const pems = chain.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  const [leaf, ...issuers] = pems.map((pem) => new X509Certificate(pem));
  if (leaf?.checkHost(name) === undefined) throw new Error(`This is no certificate for ${name}`);
  if (!leaf.checkPrivateKey(createPrivateKey(key)))
    throw new Error(`The key of the certificate for ${name} is that of another one`);
  if (roots && !isTrusted(leaf, issuers, roots))
    throw new Error(`The issuer of the certificate for ${name} is not one that browsers trust`);
  return leaf.validToDate;
}

const isOf = (one: X509Certificate, issuer: X509Certificate): boolean =>
  issuer.ca && one.checkIssued(issuer) && one.verify(issuer.publicKey);

/** Whether the certificates lead, in their order, to one of these authorities. */
function isTrusted(
  leaf: X509Certificate,
  issuers: readonly X509Certificate[],
  roots: readonly X509Certificate[],
): boolean {
  const isKnown = (one: X509Certificate) => roots.some((root) => isOf(one, root));
  let last = leaf;
  for (const issuer of issuers) {
    // What follows may lead to authorities of before.
    if (isKnown(last)) return true;
    if (!isOf(last, issuer)) return false;
    last = issuer;
  }
  return isKnown(last);
}

/**
 * Gives Caddy a certificate that another host's obtained, as if it were its own: it serves it from the next handshake on, and
 * renews it in time. One that Caddy has and that is valid for longer stays.
 * @throws Error if visitors would not accept it for the name
 */
export function putObtained(storage: Storage, certificate: Certificate): void {
  const { name, chain, key } = certificate;
  if (!isPlain(name)) throw new Error(`${name} is not the name of one host`);
  const end = endOf(certificate, storage);
  const own = readObtained(storage, name);
  if (own && Date.parse(own.notAfter) >= end.getTime()) return;
  // Its owner, whom the engine may have renumbered.
  const { uid, gid } = statSync(storage.volume);
  let folder = realpathSync(storage.volume);
  for (const part of [...storage.folders, name]) {
    folder = join(folder, part);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    // The ingress's container writes here: no link of its leads the agent elsewhere.
    if (realpathSync(folder) !== folder) throw new Error(`${folder} is a link`);
    chownSync(folder, uid, gid);
  }
  const file = (ending: string) => join(folder, `${name}.${ending}`);
  // Without it, the others are none to Caddy: it never meets a key and a certificate that do not belong together.
  rmSync(file("crt"), { force: true });
  for (const [ending, text] of [
    ["key", key],
    ["json", JSON.stringify({ sans: [name], issuer_data: { url: "" } })],
    ["crt", chain],
  ] as const) {
    writeAtomically(file(ending), text);
    chownSync(file(ending), uid, gid);
  }
}
