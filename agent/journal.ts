import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { FromAgent } from "../protocol/agent/messages.ts";
import type { Id } from "../protocol/ids.ts";

export type Lease = { jobId: Id<"job">; attempt: number };
export type Report = Extract<FromAgent, { type: "done" | "failed" }>;

/**
 * What must survive the agent: jobs it accepted and results the control plane has not acknowledged. No arguments, no
 * secrets. It may be deleted at any time: the control plane then offers anew what is missing.
 */
export type Journal = {
  accept(lease: Lease, kind: string): void;
  /** The outcome, before it is sent. */
  finish(report: Report): void;
  /** Acknowledged, or no longer ours. */
  forget(lease: Lease): void;
  unacknowledged(): Report[];
  close(): void;
};

export function openJournal(file: string): Journal {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const db = new DatabaseSync(file);
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS jobs (job_id TEXT PRIMARY KEY, attempt INTEGER NOT NULL, kind TEXT NOT NULL, report TEXT) STRICT`);
  const accept = db.prepare(
    "INSERT INTO jobs (job_id, attempt, kind) VALUES (?, ?, ?) ON CONFLICT (job_id) DO UPDATE SET attempt = excluded.attempt, report = NULL",
  );
  const finish = db.prepare("UPDATE jobs SET report = ? WHERE job_id = ? AND attempt = ?");
  const forget = db.prepare("DELETE FROM jobs WHERE job_id = ? AND attempt <= ?");
  const unfinished = db.prepare("DELETE FROM jobs WHERE report IS NULL");
  const reports = db.prepare("SELECT report FROM jobs WHERE report IS NOT NULL ORDER BY rowid");
  // What the last process had begun is offered anew by the control plane.
  unfinished.run();
  return {
    accept: ({ jobId, attempt }, kind) => void accept.run(jobId, attempt, kind),
    finish: (report) => void finish.run(JSON.stringify(report), report.jobId, report.attempt),
    forget: ({ jobId, attempt }) => void forget.run(jobId, attempt),
    unacknowledged: () => reports.all().map(({ report }) => JSON.parse(String(report)) as Report),
    close: () => db.close(),
  };
}
