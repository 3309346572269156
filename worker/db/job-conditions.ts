import { sql, type SQL, type SQLWrapper } from "drizzle-orm";
import { jobKinds, jobTraits, type JobKind, type JobTraits } from "../../protocol/agent/jobs.ts";

/** A job that waits or is worked on. */
export const openJob = sql.raw("status IN ('QUEUED', 'LEASED')");

/** `('site.deploy', …)`: the kinds with these traits, as a list for `IN`. */
export const kindsThat = (have: (traits: JobTraits) => unknown): string =>
  `(${jobKinds
    .filter((kind) => have(jobTraits[kind]))
    .map((kind) => `'${kind}'`)
    .join(", ")})`;

/** Jobs that let a site run. */
export const startingKinds = sql.raw(kindsThat(({ starts }) => starts));

/** No job of this lane waits or is worked on. */
export const idleLane = (lane: SQLWrapper | string): SQL =>
  sql`NOT EXISTS (SELECT 1 FROM jobs WHERE lane = ${lane} AND ${openJob})`;

/** No job of this kind waits or is worked on in the lane. */
export const noneOpen = (lane: SQLWrapper | string, kind: JobKind): SQL =>
  sql`NOT EXISTS (SELECT 1 FROM jobs WHERE lane = ${lane} AND kind = ${kind} AND ${openJob})`;

/** No job of this kind waits in the lane. */
export const noneQueued = (lane: SQLWrapper | string, kind: JobKind): SQL =>
  sql`NOT EXISTS (SELECT 1 FROM jobs WHERE lane = ${lane} AND kind = ${kind} AND status = 'QUEUED')`;

/** A deployment that waits or is worked on. */
export const openDeployment = sql.raw("status IN ('QUEUED', 'BUILDING', 'STARTING')");

/** The conditions of the partial indexes `jobs_taken` and `jobs_taken_commands`. */
export const takenJobs = `kind IN ${kindsThat(({ slot }) => slot === "job" || slot === "long")} AND leased_at IS NOT NULL`;
export const takenCommands = "kind = 'site.command' AND leased_at IS NOT NULL";
