import type { SQL } from "drizzle-orm";
import type { Durations, EnvEntry, JobArgs, JobKind, JobResult } from "../../../protocol/agent/jobs.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import type { Answers, Statements } from "../../db/batch.ts";
import type { BackupRow, DatabaseRow, DeploymentRow, JobRow, PackRow, SiteRow } from "../../db/rows.ts";
import type { commands } from "../../db/schema.ts";

/** Everything that a lease reads for a job, whatever its kind. */
export type Material = {
  job: JobRow;
  pack: PackRow;
  site: SiteRow | undefined;
  /** The environment of the job's version; null if that version is gone. */
  env: EnvEntry[] | null;
  /** The variables that linked databases add. */
  linkedEnv: EnvEntry[];
  deployment: DeploymentRow | undefined;
  command: typeof commands.$inferSelect | undefined;
  /** The unpaid renewal. */
  renewal: { token: string } | undefined;
  /** Deployments of the site whose images are kept, newest first. */
  kept: DeploymentRow[];
  /** The site's verified custom domains. */
  domains: { name: string; redirectTo: string | null }[];
  /** The names of the volumes that the host already has for the site. */
  heldVolumes: string[];
  database: DatabaseRow | undefined;
  /** The volumes that restores have replaced, each named by the restore that created it; null is the original. */
  replacedVolumes: (string | null)[];
  backup: BackupRow | undefined;
};

/** A job whose outcome is being recorded. */
export type Ended = {
  job: JobRow;
  /** Holds in the batch if this report ended the job. */
  ended: SQL;
};

export type Failure = {
  error: string;
  cancelled: boolean;
  durations: Durations | null;
  /** No host works on it any more, and none has undone what it began. */
  abandoned?: true;
};

/** The consequences of a job's end. */
export type Ending = {
  /** Statements for the batch that ends the job. */
  statements: Statements;
  /** Runs after that batch is written, unless another report ended the job first. */
  after?: (answers: never) => void | Promise<void>;
};

/** Creates an ending whose `after` receives the answers of its statements by name. */
export const ending = <const Of extends Statements>(
  statements: Of,
  after?: (answers: Answers<Of>) => void | Promise<void>,
): Ending => ({ statements, ...(after && { after }) });

/** How the control plane handles one kind of job. */
export type Kind<K extends JobKind> = {
  /**
   * The arguments as sent to the host: the only place where secrets are decrypted. @throws Error if something is
   * missing
   */
  args(ctx: Ctx, material: Material): JobArgs<K>;
  /** The consequences of success, as reported by the host. */
  succeeded(ctx: Ctx, end: Ended, result: JobResult<K>): Ending | Promise<Ending>;
  /** The consequences of a failure, reported by the host or by a missed deadline. */
  failed(ctx: Ctx, end: Ended, failure: Failure): Ending | Promise<Ending>;
};

/** @throws Error if the row lacks the value, which the queueing statements rule out */
function required<Value>(value: Value | null | undefined, job: JobRow, what: string): Value {
  if (value === null || value === undefined) throw new Error(`Job ${job.id} (${job.kind}) has no ${what}`);
  return value;
}

export const siteIdOf = (job: JobRow): Id<"site"> => required(job.siteId, job, "site");
export const deploymentIdOf = (job: JobRow): Id<"deployment"> =>
  required(job.deploymentId, job, "deployment");
export const databaseIdOf = (job: JobRow): Id<"database"> => required(job.databaseId, job, "database");
export const backupIdOf = (job: JobRow): Id<"backup"> => required(job.backupId, job, "backup");

export const siteOf = ({ job, site }: Material): SiteRow => required(site, job, "site");
export const commandOf = ({ job, command }: Material) => required(command, job, "command");
export const databaseOf = ({ job, database }: Material): DatabaseRow => required(database, job, "database");
export const backupOf = ({ job, backup }: Material): BackupRow => required(backup, job, "backup");
