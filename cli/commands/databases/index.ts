import { group } from "../../command.ts";
import { restartDatabase, startDatabase, stopDatabase } from "./act.ts";
import { connectDatabase } from "./connect.ts";
import { createDatabase } from "./create.ts";
import { credentials } from "./credentials.ts";
import { databaseDisk } from "./disk.ts";
import { endSession } from "./end-session.ts";
import { insight } from "./insight.ts";
import { linkDatabase, unlinkDatabase } from "./link.ts";
import { listDatabases } from "./list.ts";
import { query } from "./query.ts";
import { deleteDatabase } from "./remove.ts";
import { resizeDatabase } from "./resize.ts";
import { restore } from "./restore.ts";
import { rotate } from "./rotate.ts";
import { schema } from "./schema.ts";
import { showDatabase } from "./show.ts";
import { tunnel } from "./tunnel.ts";
import { databaseEvents, databaseLogs, databaseMetrics } from "./watch.ts";

export const databases = group(
  "databases",
  "PostgreSQL, MySQL and Redis databases",
  [
    listDatabases,
    showDatabase,
    createDatabase,
    credentials,
    connectDatabase,
    tunnel,
    query,
    schema,
    insight,
    databaseLogs,
    databaseMetrics,
    databaseEvents,
    startDatabase,
    stopDatabase,
    restartDatabase,
    linkDatabase,
    unlinkDatabase,
    rotate,
    restore,
    databaseDisk,
    endSession,
    resizeDatabase,
    deleteDatabase,
  ],
  ["db"],
);
