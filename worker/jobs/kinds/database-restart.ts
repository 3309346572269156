import { databaseSpec, databaseUp, startFailed } from "./database-started.ts";
import type { Kind } from "./kind.ts";

export const databaseRestart: Kind<"database.restart"> = {
  args: databaseSpec,
  succeeded: databaseUp("started"),
  failed: startFailed,
};
