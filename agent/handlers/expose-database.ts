import { containerName } from "../docker/database-objects.ts";
import { expose, renewCertificate } from "../databases/server-certificate.ts";
import { JobError } from "../job.ts";
import type { Handler } from "./handler.ts";
import { label } from "../docker/labels.ts";

/** The server runs on: it has ended TLS since it began, and the rest are rules of the kernel. */
export const exposeDatabase: Handler<"database.expose"> = async (
  host,
  { database, generation },
  { signal },
) => {
  const found = await host.engine.inspectContainer(containerName(database.databaseId));
  if (database.publicAccess && found?.running && found.labels[label.guarded] !== "true")
    throw new JobError(
      "It has run since before databases could be reached from outside: restart it once, and it will be.",
    );
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
