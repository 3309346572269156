import type { SQLInputValue, StatementSync } from "node:sqlite";
import { FromAgent } from "../protocol/agent/messages.ts";
import type { Id } from "../protocol/ids.ts";
import type { LogPosition } from "./log-outbox.ts";
import { openDatabase, readRow } from "./state-file.ts";
import { log } from "./log.ts";

const schema = `PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS jobs (job_id TEXT PRIMARY KEY, attempt INTEGER NOT NULL, kind TEXT NOT NULL, report TEXT) STRICT;
  CREATE TABLE IF NOT EXISTS logs (job_id TEXT PRIMARY KEY, seq INTEGER NOT NULL, at TEXT, printed_bytes INTEGER NOT NULL) STRICT`;

export type Lease = { jobId: Id<"job">; attempt: number };
export type Report = Extract<FromAgent, { type: "done" | "failed" }>;

/** The number of ended jobs to remember, so that a late offer does not start one again. */
const rememberedJobs = 1000;
/** Older ones are removed with every so many. */
const pruneEvery = 100;

/**
 * The state that must survive the agent: accepted jobs and unacknowledged results. No arguments, no secrets. The file
 * may be deleted at any time: the control plane then offers what is missing again.
 */
export type Journal = {
  /** Whether the lease is new: every offer raises the attempt, so an equal or lower one was worked on before. */
  accept(lease: Lease, kind: string): boolean;
  /** Records the outcome before it is sent. */
  finish(report: Report): void;
  /** The report was acknowledged, or the job is no longer ours. */
  forget(lease: Lease): void;
  unacknowledged(): Report[];
  /** Records how far the log of a job that outlives the agent was delivered. */
  delivered(jobId: string, position: LogPosition): void;
  deliveredUntil(jobId: string): LogPosition | null;
  close(): void;
};

/** The number of rows changed; null: nothing was written. */
function written(statement: StatementSync, ...values: SQLInputValue[]): number | null {
  try {
    return Number(statement.run(...values).changes);
  } catch (error) {
    log("error", "The journal cannot be written; it is kept in memory", { error });
    return null;
  }
}

export function openJournal(file: string): Journal {
  const db = openDatabase(file, schema);
  const accept = db.prepare(
    `INSERT INTO jobs (job_id, attempt, kind) VALUES (?, ?, ?) ON CONFLICT (job_id)
     DO UPDATE SET attempt = excluded.attempt, report = NULL WHERE excluded.attempt > attempt`,
  );
  const finish = db.prepare("UPDATE jobs SET report = ? WHERE job_id = ? AND attempt = ?");
  const forget = db.prepare("UPDATE jobs SET report = NULL WHERE job_id = ? AND attempt <= ?");
  const reports = db.prepare("SELECT report FROM jobs WHERE report IS NOT NULL ORDER BY rowid");
  const delivered = db.prepare(
    "INSERT OR REPLACE INTO logs (job_id, seq, at, printed_bytes) VALUES (?, ?, ?, ?)",
  );
  const position = db.prepare("SELECT seq, at, printed_bytes AS printedBytes FROM logs WHERE job_id = ?");
  const over = db.prepare("DELETE FROM logs WHERE job_id = ?");
  const known = db.prepare("SELECT attempt FROM jobs WHERE job_id = ?");
  /**
   * State that could not be written because the disk is full: the host keeps working, and only a restart of the agent
   * loses it.
   */
  const unwritten = new Map<string, { attempt: number; report: Report | null }>();
  const attemptOf = (jobId: string): number => Number(known.get(jobId)?.["attempt"] ?? 0);
  const outdated = db.prepare(
    `DELETE FROM jobs WHERE report IS NULL AND rowid <= (SELECT max(rowid) FROM jobs) - ${rememberedJobs}
       AND job_id NOT IN (SELECT value FROM json_each(?))`,
  );
  /** The attempts of the jobs that this process was offered, or adopted, and has not forgotten. */
  const underWay = new Map<string, number>();
  let forgotten = 0;
  const prune = () => written(outdated, JSON.stringify([...underWay.keys()]));
  // The control plane offers jobs that the last process had started again, with a higher attempt.
  prune();
  return {
    accept({ jobId, attempt }, kind) {
      underWay.set(jobId, Math.max(attempt, underWay.get(jobId) ?? 0));
      if ((unwritten.get(jobId)?.attempt ?? 0) >= attempt) return false;
      const changes = written(accept, jobId, attempt, kind);
      if (changes !== null) unwritten.delete(jobId);
      else if (attemptOf(jobId) >= attempt) return false;
      else unwritten.set(jobId, { attempt, report: null });
      return changes !== 0;
    },
    finish(report) {
      const { jobId, attempt } = report;
      const held = unwritten.get(jobId);
      if (held?.attempt === attempt) held.report = report;
      else if (
        written(finish, JSON.stringify(report), jobId, attempt) === null &&
        attemptOf(jobId) === attempt
      )
        unwritten.set(jobId, { attempt, report });
    },
    forget({ jobId, attempt }) {
      const held = unwritten.get(jobId);
      if (held && held.attempt <= attempt) held.report = null;
      written(forget, jobId, attempt);
      written(over, jobId);
      if ((underWay.get(jobId) ?? 0) <= attempt) underWay.delete(jobId);
      if (++forgotten % pruneEvery === 0) prune();
    },
    unacknowledged: () => [
      // An unreadable result is left out of the hello, so its job is offered again.
      ...reports
        .all()
        .flatMap(({ report }) => readRow(FromAgent, () => JSON.parse(String(report))))
        .filter((report) => report.type === "done" || report.type === "failed"),
      ...[...unwritten.values()].flatMap(({ report }) => report ?? []),
    ],
    delivered: (jobId, { seq, at, printedBytes }) => void written(delivered, jobId, seq, at, printedBytes),
    deliveredUntil: (jobId) => (position.get(jobId) as LogPosition | undefined) ?? null,
    close: () => db.close(),
  };
}
