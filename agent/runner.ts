import { isLongJob, type Job } from "../protocol/agent/jobs.ts";
import type { FromAgent, ToAgent } from "../protocol/agent/messages.ts";
import { failureReport, Stopped, type PhaseStart } from "./failure.ts";
import type { Host, JobRun } from "./host.ts";
import type { Journal, Lease, Report } from "./journal.ts";
import { LogOutbox } from "./log-outbox.ts";
import { printable, redactor } from "./redact.ts";
import type { AboutRunning } from "./running/desk.ts";

type Offer = Extract<ToAgent, { type: "job" }>;
type Handle = (host: Host, job: Job, run: JobRun) => Promise<unknown>;
type Running = Lease & {
  abort: AbortController;
  ended: Promise<void>;
  outcome: "report" | "forget";
  /** What the control plane heard last of its progress; said again after a reconnect. */
  phase?: Extract<FromAgent, { type: "phase" }>;
  began: PhaseStart[];
  isLong: boolean;
};

/** A report that is not acknowledged by then is sent again: the control plane may have failed to record it. */
const resendAfterMs = 30_000;

/**
 * Works on jobs, at most `slots` at once and one per site or database. Invariants: a job is in the journal before it starts, its
 * result before it is sent; a dropped job reports nothing; the next job of one starts when the last has settled.
 */
export class Runner {
  private readonly host: Host;
  private readonly journal: Journal;
  private readonly handle: Handle;
  private readonly slots: number;
  private send: (message: FromAgent) => void = () => undefined;
  private readonly running = new Map<string, Running>();
  private readonly outboxes = new Map<string, LogOutbox>();
  private readonly lastOf = new Map<string, Promise<void>>();
  /** Jobs in work, and those that wait for one of the slots. */
  private working = 0;
  private readonly waiting: (() => void)[] = [];
  private resend: NodeJS.Timeout | undefined;
  private stopping = false;

  constructor(options: { host: Host; journal: Journal; handle: Handle; slots: number }) {
    this.host = options.host;
    this.journal = options.journal;
    this.handle = options.handle;
    this.slots = options.slots;
  }

  /** What a hello says of this agent's work. */
  leases(): { running: Lease[]; finished: Lease[] } {
    const finished = this.journal.unacknowledged().map(leaseOf);
    const running = [...this.running.values()].filter(({ outcome }) => outcome === "report").map(leaseOf);
    return {
      running: running.filter((lease) => !finished.some(({ jobId }) => jobId === lease.jobId)),
      finished,
    };
  }

  /** The link is up: reports and log lines that may be lost go out again, then the room there is. */
  connected(send: (message: FromAgent) => void): void {
    this.send = send;
    for (const { phase, outcome } of this.running.values()) if (phase && outcome === "report") send(phase);
    for (const outbox of this.outboxes.values()) outbox.resend();
    this.sendReports();
    this.sayReady();
    this.resend = setInterval(() => this.sendReports(), resendAfterMs);
  }

  disconnected(): void {
    this.send = () => undefined;
    clearInterval(this.resend);
  }

  receive(message: Exclude<ToAgent, { type: "welcome" } | AboutRunning>): void {
    switch (message.type) {
      case "job":
        return this.take(message);
      case "ack":
        this.journal.forget(message);
        return this.closeOutbox(message);
      case "drop":
        this.journal.forget(message);
        this.closeOutbox(message);
        return this.stop(message, "forget", new Stopped("dropped", "The job is no longer this host's."));
      case "cancel":
        return this.stop(message, "report", new Stopped("cancelled", "Cancelled."));
      case "logAck":
        return this.outboxes.get(keyOf(message))?.acknowledge(message.lastSeq);
      default:
        message satisfies never;
    }
  }

  /** Takes no more work; resolves when what runs has ended. What was offered meanwhile is offered again. */
  async finish(): Promise<void> {
    this.send({ type: "ready", free: 0 });
    this.stopping = true;
    while (this.running.size > 0) await Promise.all([...this.running.values()].map(({ ended }) => ended));
  }

  /** Takes no more work and stops what runs; the control plane offers it again. */
  async shutdown(): Promise<void> {
    this.stopping = true;
    for (const running of this.running.values()) {
      running.outcome = "forget";
      running.abort.abort(new Stopped("shutdown", "The agent is stopping."));
    }
    await Promise.all([...this.running.values()].map(({ ended }) => ended));
  }

  private take(offer: Offer): void {
    if (this.stopping) return;
    const { job, attempt } = offer;
    const lease = { jobId: job.id, attempt };
    if (!this.journal.accept(lease, job.kind)) return;
    const known = this.running.get(job.id);
    if (known) this.stop(known, "forget", new Stopped("dropped", "Offered anew."));
    const subject = subjectOf(job);
    const before = this.lastOf.get(subject) ?? Promise.resolve();
    const abort = new AbortController();
    const running: Running = {
      ...lease,
      abort,
      outcome: "report",
      began: [],
      ended: Promise.resolve(),
      isLong: isLongJob(job.kind),
    };
    running.ended = before.then(() => this.inRoom(offer, () => this.work(offer, running)));
    this.running.set(job.id, running);
    this.lastOf.set(subject, running.ended);
    if (running.isLong) this.sayReady();
    void running.ended.then(() => {
      if (this.lastOf.get(subject) === running.ended) this.lastOf.delete(subject);
      if (this.running.get(job.id) === running) this.running.delete(job.id);
      this.sayReady();
    });
  }

  /** Long ones have room of their own: the control plane sees to it that they are few. */
  private inRoom({ job }: Offer, work: () => Promise<void>): Promise<void> {
    return isLongJob(job.kind) ? work() : this.inSlot(work);
  }

  private async inSlot(work: () => Promise<void>): Promise<void> {
    if (this.working >= this.slots) await new Promise<void>((resolve) => this.waiting.push(resolve));
    else this.working++;
    try {
      await work();
    } finally {
      // The slot goes to the next one in line, or back.
      const next = this.waiting.shift();
      if (next) next();
      else this.working--;
    }
  }

  private async work({ job, attempt, timeoutMs }: Offer, running: Running): Promise<void> {
    const lease = { jobId: job.id, attempt };
    const redact = redactor(secretsOf(job));
    const outbox = this.outboxFor(job, attempt);
    const deadline = setTimeout(
      () =>
        running.abort.abort(
          new Stopped(
            "deadline",
            `This did not end within ${Math.round(timeoutMs / 60_000)} minutes: make the build shorter, or try again.`,
          ),
        ),
      timeoutMs,
    );
    const run: JobRun = {
      jobId: job.id,
      signal: running.abort.signal,
      log: (text, stream = "system") => outbox?.add(redact(printable(text)), stream, new Date()),
      phase: (phase, source) => {
        running.began.push([phase, performance.now()]);
        running.phase = {
          type: "phase",
          ...lease,
          phase,
          commit: source?.commit ?? running.phase?.commit ?? null,
          commitMessage: source
            ? redact(printable(source.commitMessage)).slice(0, 500)
            : (running.phase?.commitMessage ?? null),
        };
        if (running.outcome === "report") this.send(running.phase);
      },
    };
    let report: Report;
    try {
      running.abort.signal.throwIfAborted();
      const result = await this.handle(this.host, job, run);
      report = { type: "done", ...lease, result };
    } catch (error) {
      report = failureReport(running, error, redact);
    } finally {
      clearTimeout(deadline);
    }
    if (running.outcome === "forget") {
      outbox?.close();
      return;
    }
    delete running.phase;
    this.journal.finish(report);
    outbox?.flush();
    this.send(report);
  }

  private stop(lease: Lease, outcome: Running["outcome"], reason: Stopped): void {
    const running = this.running.get(lease.jobId);
    if (!running || running.attempt !== lease.attempt) return;
    running.outcome = outcome;
    running.abort.abort(reason);
  }

  private outboxFor(job: Job, attempt: number): LogOutbox | undefined {
    if (job.kind !== "site.deploy") return undefined;
    const source = { jobId: job.id, attempt, deploymentId: job.args.deploymentId };
    const outbox = new LogOutbox(source, (frame) => this.send(frame));
    this.outboxes.set(keyOf(source), outbox);
    return outbox;
  }

  private closeOutbox(lease: Lease): void {
    this.outboxes.get(keyOf(lease))?.close();
    this.outboxes.delete(keyOf(lease));
  }

  private sendReports(): void {
    for (const report of this.journal.unacknowledged()) this.send(report);
  }

  private sayReady(): void {
    if (!this.stopping)
      this.send({
        type: "ready",
        free: Math.max(0, this.slots - [...this.running.values()].filter(({ isLong }) => !isLong).length),
      });
  }
}

const keyOf = ({ jobId, attempt }: Lease): string => `${jobId}:${attempt}`;

const leaseOf = ({ jobId, attempt }: Lease): Lease => ({ jobId, attempt });

/** The site or database it is about. */
function subjectOf({ args }: Job): string {
  if ("like" in args) return args.backup.backupId;
  if ("database" in args) return args.database.databaseId;
  if ("databaseId" in args) return args.databaseId;
  return "run" in args ? args.run.siteId : args.siteId;
}

function secretsOf(job: Job): string[] {
  if ("like" in job.args) return [job.args.like.adminPassword];
  if ("database" in job.args) {
    const { adminPassword, logins } = job.args.database;
    return [adminPassword, ...logins.map(({ password }) => password)];
  }
  if (!("run" in job.args)) return [];
  const values = job.args.run.env.filter(({ secret }) => secret).map(({ value }) => value);
  if (job.kind === "site.deploy" && job.args.source.type === "git" && job.args.source.token !== null)
    values.push(job.args.source.token);
  if (job.kind === "site.deploy" && job.args.source.type === "image" && job.args.source.login !== null)
    values.push(job.args.source.login.password);
  return values;
}
