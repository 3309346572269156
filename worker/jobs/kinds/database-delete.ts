import { forgetDatabase } from "../databases/forget.ts";
import { setDatabase } from "./database-status.ts";
import { databaseIdOf, databaseOf, ending, type Kind } from "./kind.ts";

export const databaseDelete: Kind<"database.delete"> = {
  args(_ctx, material) {
    const { id, accountId } = databaseOf(material);
    return { databaseId: id, accountId };
  },
  succeeded: (ctx, { job, ended }) =>
    ending({ forgotten: forgetDatabase(ctx, databaseIdOf(job), ended) }, () => {
      if (job.hostId) ctx.hosts.letGo(job.hostId, databaseIdOf(job));
    }),
  failed: (ctx, { job, ended }, { error }) =>
    ending({ error: setDatabase(ctx, databaseIdOf(job), { error }, ended) }),
};
