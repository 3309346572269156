import { containerName } from "../docker/database-objects.ts";
import { expose, renewCertificate } from "../databases/server-certificate.ts";
import { JobError } from "../job.ts";
import type { Handler } from "./handler.ts";
import { label } from "../docker/labels.ts";

/** The server keeps running: it already supports TLS, and everything else is firewall rules. */
export const exposeDatabase: Handler<"database.expose"> = async (
  host,
  { database, generation },
  { signal },
) => {
  const found = await host.engine.inspectContainer(containerName(database.databaseId));
  if (database.publicAccess && found?.running && found.labels[label.guarded] !== "true")
    throw new JobError("It was started before public access was supported: restart it once, then try again.");
  const isGuarded = found?.running && found.labels[label.guarded] === "true";
  const endsAt = isGuarded ? await renewCertificate(host, found.id, database, signal) : null;
  await expose(host, database);
  return {
    generation,
    address: await host.publicAccess.address(),
    certificateAuthority: (await host.publicAccess.authority()).certificate,
    endsAt,
  };
};
