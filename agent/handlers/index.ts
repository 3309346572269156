import type { Job, JobKind } from "../../protocol/agent/jobs.ts";
import type { Host } from "../host.ts";
import type { Handlers } from "./handler.ts";
import type { JobRun } from "../job.ts";
import { backupDatabase } from "./backup-database.ts";
import { backupVolume } from "./backup-volume.ts";
import { deleteDatabase } from "./delete-database.ts";
import { deleteSite, evictSite } from "./delete-site.ts";
import { deploySite } from "./deploy-site.ts";
import { exposeDatabase } from "./expose-database.ts";
import { provisionDatabase } from "./provision-database.ts";
import { restoreDatabase } from "./restore-database.ts";
import { restoreVolume } from "./restore-volume.ts";
import { restartDatabase } from "./restart-database.ts";
import { restartSite } from "./restart-site.ts";
import { rotateDatabase } from "./rotate-database.ts";
import { routeSite } from "./route-site.ts";
import { runCommand } from "./run-command.ts";
import { startDatabase } from "./start-database.ts";
import { startSite } from "./start-site.ts";
import { stopDatabase } from "./stop-database.ts";
import { stopSite } from "./stop-site.ts";
import { verifyBackup } from "./verify-backup.ts";
import { verifyVolume } from "./verify-volume.ts";

/** Exhaustive: a kind without a handler does not compile. */
export const handlers: Handlers = {
  "site.deploy": deploySite,
  "site.start": startSite,
  "site.stop": stopSite,
  "site.restart": restartSite,
  "site.route": routeSite,
  "site.delete": deleteSite,
  "database.provision": provisionDatabase,
  "database.start": startDatabase,
  "database.restart": restartDatabase,
  "database.stop": stopDatabase,
  "database.rotate": rotateDatabase,
  "database.expose": exposeDatabase,
  "database.delete": deleteDatabase,
  "database.backup": backupDatabase,
  "database.verify": verifyBackup,
  "database.restore": restoreDatabase,
  "volume.backup": backupVolume,
  "volume.verify": verifyVolume,
  "volume.restore": restoreVolume,
  "site.evict": evictSite,
  "site.command": runCommand,
};

export const handle = <K extends JobKind>(host: Host, job: Job<K>, run: JobRun): Promise<unknown> =>
  handlers[job.kind](host, job.args as never, run);
