import { databaseSpec, databaseUp, startFailed } from "./database-started.ts";
import type { Kind } from "./kind.ts";

export const databaseStart: Kind<"database.start"> = {
  args: (ctx, material) => ({
    ...databaseSpec(ctx, material),
    ...(material.replacedVolumes.length > 0 && { replacedVolumes: material.replacedVolumes }),
  }),
  succeeded: databaseUp("started"),
  failed: startFailed,
};
