import { sql } from "drizzle-orm";
import { giveRoomAway } from "../hosts/placement.ts";
import { ending, siteIdOf, type Kind } from "./kind.ts";
import { moveSite, setError } from "./site-status.ts";
import { currentVersion, siteStarted } from "./site-started.ts";

export const siteStart: Kind<"site.start"> = {
  args: currentVersion,
  succeeded: siteStarted,
  failed: (ctx, { job, ended }, { error }) =>
    ending({
      failed: moveSite(ctx, siteIdOf(job), "startFailed", ended, false),
      room: ctx.statement(giveRoomAway(sql`id = ${siteIdOf(job)} AND ${ended}`)),
      error: setError(ctx, siteIdOf(job), `Not started: ${error}`, ended),
    }),
};
