import { databaseSpec, databaseUp } from "./database-started.ts";
import { moveDatabase } from "./database-status.ts";
import { databaseIdOf, ending, type Kind } from "./kind.ts";

export const databaseProvision: Kind<"database.provision"> = {
  args: databaseSpec,
  succeeded: databaseUp("provisioned"),
  failed: (ctx, { job, ended }, { error }) =>
    ending({ failed: moveDatabase(ctx, databaseIdOf(job), "provisionFailed", ended, { error }) }),
};
