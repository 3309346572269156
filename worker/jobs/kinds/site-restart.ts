import { ending, siteIdOf, type Kind } from "./kind.ts";
import { setError } from "./site-status.ts";
import { currentVersion, siteStarted } from "./site-started.ts";

export const siteRestart: Kind<"site.restart"> = {
  args: currentVersion,
  succeeded: siteStarted,
  failed: (ctx, { job, ended }, { error }) =>
    ending({ error: setError(ctx, siteIdOf(job), `Not restarted: ${error}`, ended) }),
};
