import type { JobResult } from "../../../protocol/agent/jobs.ts";
import type { Ctx } from "../../ctx.ts";
import { specOf } from "../databases/spec.ts";
import { limitsFollowed } from "../queue-restart.ts";
import { moveDatabase } from "./database-status.ts";
import { databaseIdOf, ending, type Ended, type Ending, type Kind, type Material } from "./kind.ts";

export const databaseSpec = (ctx: Ctx, material: Material) => ({ database: specOf(ctx, material) });

/** The database runs with the limits of the pack that was read when the job was leased. */
export const databaseUp =
  (event: "provisioned" | "started") =>
  (ctx: Ctx, { job, ended }: Ended, { version }: JobResult<"database.start">): Ending =>
    ending({
      up: moveDatabase(ctx, databaseIdOf(job), event, ended, { version, error: null }),
      limits: limitsFollowed(ctx, "databases", databaseIdOf(job), job.leasedAt, ended),
    });

export const startFailed: Kind<"database.start">["failed"] = (ctx, { job, ended }, { error }) =>
  ending({ failed: moveDatabase(ctx, databaseIdOf(job), "startFailed", ended, { error }) });
