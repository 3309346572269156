import { exposed, exposeFailed } from "../databases/public-access.ts";
import { reconcileDatabases } from "../databases/reconcile.ts";
import { specOf } from "../databases/spec.ts";
import { databaseIdOf, databaseOf, ending, type Kind } from "./kind.ts";

export const databaseExpose: Kind<"database.expose"> = {
  args: (ctx, material) => ({
    database: specOf(ctx, material),
    generation: databaseOf(material).publicGeneration,
  }),
  succeeded: (ctx, { job, ended }, result) =>
    ending({ exposed: exposed(ctx, databaseIdOf(job), result, ended) }, () => reconcileDatabases(ctx)),
  failed: (ctx, { job, ended }, { error }) =>
    ending({ failed: exposeFailed(ctx, databaseIdOf(job), error, ended) }),
};
