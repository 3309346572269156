import type { JobKind } from "../../../protocol/agent/jobs.ts";
import { databaseBackup } from "./database-backup.ts";
import { databaseDelete } from "./database-delete.ts";
import { databaseExpose } from "./database-expose.ts";
import { databaseProvision } from "./database-provision.ts";
import { databaseRestart } from "./database-restart.ts";
import { databaseRestore } from "./database-restore.ts";
import { databaseRotate } from "./database-rotate.ts";
import { databaseStart } from "./database-start.ts";
import { databaseStop } from "./database-stop.ts";
import { databaseVerify } from "./database-verify.ts";
import type { Kind } from "./kind.ts";
import { siteCommand } from "./site-command.ts";
import { siteDelete } from "./site-delete.ts";
import { siteDeploy } from "./site-deploy.ts";
import { siteEvict } from "./site-evict.ts";
import { siteRestart } from "./site-restart.ts";
import { siteRoute } from "./site-route.ts";
import { siteStart } from "./site-start.ts";
import { siteStop } from "./site-stop.ts";
import { volumeBackup } from "./volume-backup.ts";
import { volumeRestore } from "./volume-restore.ts";
import { volumeVerify } from "./volume-verify.ts";

/** Exhaustive: a kind without an entry does not compile. */
export const kinds: { [K in JobKind]: Kind<K> } = {
  "site.deploy": siteDeploy,
  "site.start": siteStart,
  "site.stop": siteStop,
  "site.restart": siteRestart,
  "site.route": siteRoute,
  "site.delete": siteDelete,
  "site.evict": siteEvict,
  "site.command": siteCommand,
  "database.provision": databaseProvision,
  "database.start": databaseStart,
  "database.restart": databaseRestart,
  "database.stop": databaseStop,
  "database.rotate": databaseRotate,
  "database.expose": databaseExpose,
  "database.delete": databaseDelete,
  "database.backup": databaseBackup,
  "database.verify": databaseVerify,
  "database.restore": databaseRestore,
  "volume.backup": volumeBackup,
  "volume.verify": volumeVerify,
  "volume.restore": volumeRestore,
};
