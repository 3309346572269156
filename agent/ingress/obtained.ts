import { X509Certificate } from "node:crypto";
import { chownSync, mkdirSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Certificate } from "../../protocol/agent/certificates.ts";
import type { Engine } from "../docker/engine.ts";
import { label } from "../docker/labels.ts";
import { ingressVolume } from "./container.ts";
import { writeAtomically } from "./write-atomically.ts";

/** Caddy's own, unless it is told another. */
const letsEncrypt = "https://acme-v02.api.letsencrypt.org/directory";

/** Where Caddy keeps what it obtained itself: a folder of this host, and folders below it as certmagic names them. */
export type Storage = { volume: string; folders: readonly string[] };

/** null: there is no such volume. @param directory of the certificate authority */
export async function caddyStorage(
  engine: Pick<Engine, "volumes">,
  agentId: string,
  directory = letsEncrypt,
): Promise<Storage | null> {
  const volumes = await engine.volumes({ [label.ingress]: agentId });
  const found = volumes.find(({ name }) => name === ingressVolume(agentId));
  return found ? { volume: found.folder, folders: ["caddy", "certificates", issuerOf(directory)] } : null;
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
export function readObtained({ volume, folders }: Storage, name: string): Certificate | null {
  if (!isPlain(name)) return null;
  const read = (ending: string) => readFileSync(join(volume, ...folders, name, `${name}.${ending}`), "utf8");
  try {
    const chain = read("crt");
    return { name, chain, key: read("key"), notAfter: new X509Certificate(chain).validToDate.toISOString() };
  } catch {
    return null;
  }
}

/** As `putObtained`, for all of them. */
export async function giveCaddy(
  engine: Pick<Engine, "volumes">,
  agentId: string,
  directory: string | undefined,
  certificates: readonly Certificate[],
): Promise<void> {
  const storage = await caddyStorage(engine, agentId, directory);
  if (!storage) throw new Error("The ingress has no volume for its certificates");
  for (const certificate of certificates) putObtained(storage, certificate);
}

/**
 * Gives Caddy a certificate that another host's obtained, as if it were its own: it serves it from the next handshake on, and
 * renews it in time. One that Caddy has and that is valid for longer stays.
 */
export function putObtained(storage: Storage, { name, chain, key, notAfter }: Certificate): void {
  if (!isPlain(name)) throw new Error(`${name} is not the name of one host`);
  const own = readObtained(storage, name);
  if (own && Date.parse(own.notAfter) >= Date.parse(notAfter)) return;
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
