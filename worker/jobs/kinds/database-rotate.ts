import { loginsToBe } from "../databases/logins.ts";
import { passwordKnown, passwordRetired } from "../databases/passwords.ts";
import { reconcileDatabases } from "../databases/reconcile.ts";
import { specOf } from "../databases/spec.ts";
import { setDatabase } from "./database-status.ts";
import { databaseIdOf, ending, type Kind } from "./kind.ts";

export const databaseRotate: Kind<"database.rotate"> = {
  args: (ctx, material) => ({ database: specOf(ctx, material, loginsToBe) }),
  succeeded: (ctx, { job, ended }) =>
    ending(
      {
        retired: passwordRetired(ctx, databaseIdOf(job), ended),
        known: passwordKnown(ctx, databaseIdOf(job), ended),
      },
      () => reconcileDatabases(ctx),
    ),
  // The current password stays valid; the next rotation removes what this one left behind.
  failed: (ctx, { job, ended }, { error }) =>
    ending({ kept: setDatabase(ctx, databaseIdOf(job), { nextPasswordSealed: null, error }, ended) }),
};
