import tar from "tar-stream";
import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import { ownerOf } from "../docker/image-user.ts";
import { fileIn } from "../docker/files-in.ts";
import type { Host } from "../host.ts";
import { log } from "../log.ts";
import { endsAtOf, isFit, makeServerCertificate } from "./certificates.ts";
import { certificateFile, keyFile, tlsFolder } from "./database-engine.ts";
import { engines } from "./index.ts";
import { run } from "./run-program.ts";

/**
 * Ensures a valid certificate in the container; a fit one is kept. @returns whether it was replaced, and when it
 * expires
 */
async function ensureCertificate(host: Host, id: string, spec: DatabaseSpec) {
  const authority = await host.publicAccess.authority();
  // A database without public access does not need the host's address.
  const address = await host.publicAccess.address().catch(() => null);
  const names = [...(address === null ? [] : [address]), spec.hostname];
  const now = new Date();
  const present = await fileIn(host.engine, id, certificateFile);
  if (isFit(present, authority, names, now)) return { isNew: false, endsAt: endsAtOf(present) };
  const { key, certificate } = await makeServerCertificate(authority, names, now);
  const engine = engines[spec.type];
  const passwd = await fileIn(host.engine, id, "/etc/passwd");
  const group = await fileIn(host.engine, id, "/etc/group");
  const [owner] = engine.users.flatMap((user) => ownerOf(user, passwd, group) ?? []);
  if (!owner) throw new Error(`${spec.image} has no user ${engine.users.join(" or ")}`);
  const archive = tar.pack();
  archive.entry({ name: tlsFolder, type: "directory", mode: 0o755 });
  const put = (name: string, mode: number, content: string) =>
    archive.entry({ name, mode, ...owner }, content);
  if (engine.accessFile) put(`${tlsFolder}/${engine.accessFile.name}`, 0o644, engine.accessFile.text);
  put(keyFile, 0o600, key);
  put(certificateFile, 0o644, certificate);
  archive.finalize();
  await host.engine.writeFiles(id, "/", archive);
  return { isNew: true, endsAt: endsAtOf(certificate) };
}

/** For a container that does not run yet. */
export const giveCertificate = async (host: Host, id: string, spec: DatabaseSpec): Promise<void> =>
  void (await ensureCertificate(host, id, spec));

/** For a running server. @returns when the certificate expires */
export async function renewCertificate(
  host: Host,
  id: string,
  spec: DatabaseSpec,
  signal: AbortSignal,
): Promise<string> {
  const { isNew, endsAt } = await ensureCertificate(host, id, spec);
  if (isNew) await engines[spec.type].renew(spec, (program) => run(host, id, program, signal));
  return endsAt;
}

/** Applies the spec's public access. @throws JobError if the host cannot */
export async function expose(host: Host, { databaseId, type, publicAccess }: DatabaseSpec): Promise<void> {
  // Checked before it is stored: access that cannot be opened now must not open by itself later.
  if (publicAccess && !host.publicAccess.has(databaseId)) await host.isolation.demandPublicAccess(true);
  host.publicAccess.set(
    databaseId,
    publicAccess ? { ...publicAccess, containerPort: engines[type].tlsPort } : null,
  );
  await host.isolation.demandPublicAccess(publicAccess !== undefined);
}

/** After a start: a failure must not keep the database from its own sites. */
export async function exposeStarted(host: Host, spec: DatabaseSpec): Promise<void> {
  if (!spec.publicAccess && !host.publicAccess.has(spec.databaseId)) return;
  await expose(host, spec).catch((error) =>
    log("error", "A database's public access was not set up", { databaseId: spec.databaseId, error }),
  );
}
