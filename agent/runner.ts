import { acrossRestart } from "./across-restart.ts";
import { jobTraits, secretsOf, type Job, type Slot } from "../protocol/agent/jobs.ts";
import type { Id } from "../protocol/ids.ts";
import type { FromAgent, ToAgent } from "../protocol/agent/messages.ts";
import { failureReport, isShutdown, Stopped } from "./failure.ts";
import { withGracePeriod } from "./with-grace-period.ts";
import type { Host } from "./host.ts";
import type { JobRun } from "./job.ts";
import { fencedHost } from "./fenced-host.ts";
import type { Journal, Lease, Report } from "./journal.ts";
import { log } from "./log.ts";
import { LogOutbox } from "./log-outbox.ts";
import { timesUntilEnd, type PhaseStart } from "./phase-times.ts";
import { printable, quotable, redactor } from "../protocol/redact.ts";
import type { AboutStreams } from "./streams/stream-server.ts";
import type { AboutRunning } from "./question-server.ts";

type Offer = Extract<ToAgent, { type: "job" }>;
type Handle = (host: Host, job: Job, run: JobRun) => Promise<unknown>;
/** A job being worked on, whether offered or adopted. */
type Task = Lease & {
  slot: Slot;
  /** Tasks of one lane run one at a time. */
  lane: string;
  timeoutMs: number;
  lateReason: string;
  secrets: string[];
  /** The log it writes to. */
  logId: Id<"deployment" | "command"> | null;
  /** @param givenUp aborts when the run is abandoned: its further actions must have no effect */
  handle: (run: JobRun, givenUp: AbortSignal) => Promise<unknown>;
};
/** A command that a previous agent started. */
export type Adopted = Lease & {
  commandId: Id<"command">;
  secrets: string[];
  handle: (run: JobRun) => Promise<unknown>;
};
type Running = Lease & {
  /** null: it has released its slot. */
  slot: Slot | null;
  abort: AbortController;
  ended: Promise<void>;
  outcome: "report" | "forget";
  /** The last progress report, which is repeated after a reconnect. */
  phase?: Extract<FromAgent, { type: "phase" }>;
  began: PhaseStart[];
};

/** Unacknowledged reports and log lines are sent again after this: the control plane may have failed to record them. */
const resendAfterMs = 30_000;

/** Slots for jobs that build nothing. */
const shortSlots = 4;
/** A new version that is not up by then only waits for its app and releases its slot. */
const startSlotMs = 5000;

/** The time a cancelled job has for cleaning up: a database's server alone has a minute to stop. */
const defaultGraceMs = 75_000;

/** A command ends by its own limit; this one is a safeguard. */
const adoptedTimeoutMs = 2 * 3_600_000;

/**
 * Runs jobs, at most `slots` at once and one per lane, and commands in slots of their own. Invariants: a job is in
 * the journal before it starts, its result before it is sent; a dropped job reports nothing; the next job of a lane
 * starts when the previous one has settled or was given up, and from then on nothing of that reaches the engine.
 */
export class Runner {
  private readonly host: Host;
  private readonly journal: Journal;
  private readonly handle: Handle;
  private readonly slots: Slots;
  private readonly shortSlots = new Slots(shortSlots);
  private readonly commandSlots: Slots;
  private readonly startSlotMs: number;
  private readonly graceMs: number;
  private send: (message: FromAgent) => void = () => undefined;
  private readonly running = new Map<string, Running>();
  private readonly outboxes = new Map<string, LogOutbox>();
  private readonly lastOfLane = new Map<string, Promise<void>>();
  private resend: NodeJS.Timeout | undefined;
  private ingressReplacedAt: string | undefined;
  private stopping = false;
  private engineAnswers = true;

  constructor(options: {
    host: Host;
    journal: Journal;
    handle: Handle;
    slots: number;
    commandSlots?: number;
    startSlotMs?: number;
    /** The time after cancel, drop or deadline until a job is given up. */
    graceMs?: number;
  }) {
    this.host = options.host;
    this.journal = options.journal;
    this.handle = options.handle;
    this.slots = new Slots(options.slots);
    this.commandSlots = new Slots(options.commandSlots ?? 0);
    this.startSlotMs = options.startSlotMs ?? startSlotMs;
    this.graceMs = options.graceMs ?? defaultGraceMs;
  }

  /** This agent's work as reported in a hello. */
  leases(): { slots: number; running: Lease[]; finished: Lease[] } {
    const finished = this.journal.unacknowledged().map(leaseOf);
    const running = [...this.running.values()].filter(({ outcome }) => outcome === "report").map(leaseOf);
    return {
      slots: this.stopping || !this.engineAnswers ? 0 : this.slots.less(0),
      running: running.filter((lease) => !finished.some(({ jobId }) => jobId === lease.jobId)),
      finished,
    };
  }

  /** Whether a job of this site or database is waiting or running here. */
  isWorkingOn(id: string): boolean {
    return this.lastOfLane.has(id);
  }

  /** The link is up: resends reports and log lines that may be lost, then announces free slots. */
  connected(send: (message: FromAgent) => void): void {
    this.send = send;
    for (const { phase, outcome } of this.running.values()) if (phase && outcome === "report") send(phase);
    for (const outbox of this.outboxes.values()) outbox.resend();
    this.sendReports();
    this.sayReady();
    this.resend = setInterval(() => {
      for (const outbox of this.outboxes.values()) outbox.resendStalled();
      this.sendReports();
    }, resendAfterMs);
  }

  disconnected(): void {
    this.send = () => undefined;
    clearInterval(this.resend);
  }

  receive(
    message: Exclude<
      ToAgent,
      { type: "welcome" | "verdicts" | "certificates" | "peers" } | AboutRunning | AboutStreams
    >,
  ): void {
    switch (message.type) {
      case "job":
        return this.take(message);
      case "ack":
        this.journal.forget(message);
        return this.closeOutbox(message);
      case "drop":
        this.journal.forget(message);
        this.closeOutbox(message);
        return this.stop(
          message,
          "forget",
          new Stopped("dropped", "The job no longer belongs to this host."),
        );
      case "cancel":
        return this.stop(message, "report", new Stopped("cancelled", "Cancelled."));
      case "logAck":
        return this.logDelivered(message, message.lastSeq);
      default:
        message satisfies never;
    }
  }

  /**
   * Accepts no more work; resolves when running jobs and draining versions have ended. Jobs offered meanwhile are
   * offered again, and so are backups, verifications and restores, which could keep the host closed for hours.
   */
  async finish(): Promise<void> {
    this.send({ type: "ready", free: 0, freeCommands: 0, freeShort: 0, slots: 0 });
    this.stopping = true;
    // Commands continue without this agent.
    const jobs = () => [...this.running.values()].filter(({ slot }) => slot !== "command" && slot !== "long");
    while (jobs().length > 0) await Promise.all(jobs().map(({ ended }) => ended));
    await this.host.retired();
    await this.interrupt([...this.running.values()].filter(({ slot }) => slot === "long"));
  }

  /** Accepts no more work and stops running jobs, which the control plane offers again; commands keep running. */
  async shutdown(): Promise<void> {
    this.stopping = true;
    await this.interrupt([...this.running.values()]);
  }

  private async interrupt(jobs: readonly Running[]): Promise<void> {
    for (const running of jobs) {
      running.outcome = "forget";
      running.abort.abort(new Stopped("shutdown", "The agent is stopping."));
    }
    await Promise.all(jobs.map(({ ended }) => ended));
  }

  /** Adopts a command; the next hello includes it. */
  adopt({ jobId, attempt, commandId, secrets, handle }: Adopted): void {
    const lease = { jobId, attempt };
    this.journal.accept(lease, "site.command");
    const timeoutMs = adoptedTimeoutMs;
    const lateReason = lateCommand;
    this.begin({
      ...lease,
      slot: "command",
      lane: commandId,
      timeoutMs,
      lateReason,
      secrets,
      logId: commandId,
      handle,
    });
  }

  private take({ job, attempt, timeoutMs, lane, logId }: Offer): void {
    if (this.stopping) return;
    const lease = { jobId: job.id, attempt };
    if (!this.journal.accept(lease, job.kind)) return;
    const known = this.running.get(job.id);
    if (known) this.stop(known, "forget", new Stopped("dropped", "Offered anew."));
    const { slot } = jobTraits[job.kind];
    this.begin({
      ...lease,
      slot,
      lane,
      timeoutMs,
      lateReason:
        slot === "command"
          ? lateCommand
          : `This did not end within ${Math.round(timeoutMs / 60_000)} minutes: make the build shorter, or try again.`,
      secrets: secretsOf(job),
      logId,
      handle: (run, givenUp) =>
        acrossRestart(
          this.host.engine,
          run,
          // All are idempotent but for what an owner's command may have done, which a deployment's release command is too.
          () => job.kind !== "site.command" && run.hasRunCommand !== true,
          // The other half is for doing it again.
          timeoutMs / 2,
          (over) => this.handle(fencedHost(this.host, AbortSignal.any([givenUp, over])), job, run),
        ),
    });
  }

  private begin(task: Task): void {
    const { jobId, attempt, lane, slot } = task;
    const before = this.lastOfLane.get(lane) ?? Promise.resolve();
    const abort = new AbortController();
    const running: Running = {
      jobId,
      attempt,
      slot,
      abort,
      outcome: "report",
      began: [],
      ended: Promise.resolve(),
    };
    const slots = { job: this.slots, short: this.shortSlots, command: this.commandSlots, long: longSlots }[
      slot
    ];
    running.ended = before.then(() =>
      slots.use((leave) => {
        const giveBack = () => {
          leave();
          running.slot = null;
          this.sayReady();
        };
        return this.work(task, running, giveBack);
      }),
    );
    this.running.set(jobId, running);
    this.lastOfLane.set(lane, running.ended);
    // It was leased for a slot that it does not occupy yet, so report that slot as free.
    if (slot === "long") this.sayReady();
    void running.ended.then(() => {
      if (this.lastOfLane.get(lane) === running.ended) this.lastOfLane.delete(lane);
      if (this.running.get(jobId) === running) this.running.delete(jobId);
      this.sayReady();
    });
  }

  /** @param giveBack releases its slot early */
  private async work(task: Task, running: Running, giveBack: () => void): Promise<void> {
    const lease = leaseOf(task);
    const redact = redactor(task.secrets);
    const outbox = this.outboxFor(task);
    const afterwards: (() => Promise<void>)[] = [];
    const givenUp = new AbortController();
    const deadline = setTimeout(
      () => running.abort.abort(new Stopped("deadline", task.lateReason)),
      task.timeoutMs,
    );
    let starting: NodeJS.Timeout | undefined;
    const run: JobRun = {
      ...lease,
      signal: running.abort.signal,
      log: (text, stream = "system") => {
        if (!givenUp.signal.aborted) outbox?.add(redact(printable(text)), stream, new Date());
      },
      print: ({ at, stream, text }) => {
        if (givenUp.signal.aborted) return false;
        outbox?.add(redact(printable(text)), stream, at);
        return outbox !== undefined && !outbox.isFull;
      },
      printLast: (lines) => {
        if (givenUp.signal.aborted) return;
        outbox?.addLast(lines.map((line) => ({ ...line, text: redact(printable(line.text)) })));
      },
      printedUntil: outbox?.position.at ?? null,
      afterwards: (work) => void afterwards.push(work),
      phase: (phase, source) => {
        if (givenUp.signal.aborted) return;
        if (outbox) outbox.step = phase;
        if (running.began.at(-1)?.[0] !== phase) running.began.push([phase, performance.now()]);
        if (phase === "start") starting ??= setTimeout(giveBack, this.startSlotMs);
        // Nothing but its probation is left.
        if (phase === "swap") giveBack();
        running.phase = {
          type: "phase",
          ...lease,
          phase,
          commit: source?.commit ?? running.phase?.commit ?? null,
          commitMessage: source
            ? redact(quotable(source.commitMessage)).slice(0, 500)
            : (running.phase?.commitMessage ?? null),
        };
        if (running.outcome === "report") this.send(running.phase);
      },
    };
    let report: Report;
    try {
      running.abort.signal.throwIfAborted();
      const result = await withGracePeriod(
        lease,
        task.handle(run, givenUp.signal),
        running.abort.signal,
        this.graceMs,
      );
      // Its output can no longer be read once its end is known.
      if (task.slot === "command") await outbox?.delivered(running.abort.signal);
      report = { type: "done", ...lease, result };
    } catch (error) {
      const times = timesUntilEnd(running.began, performance.now());
      if (times !== null && running.outcome === "report") run.log(times);
      report = failureReport(running, error, redact);
    } finally {
      clearTimeout(deadline);
      clearTimeout(starting);
    }
    if (running.outcome === "forget") outbox?.close();
    else {
      delete running.phase;
      this.journal.finish(report);
      outbox?.flush();
      this.send(report);
    }
    if (!isShutdown(running.abort.signal)) await this.tidyUp(lease, afterwards);
    givenUp.abort(new Error(`Attempt ${lease.attempt} of ${lease.jobId} is over: it was given up`));
  }

  private async tidyUp(lease: Lease, afterwards: readonly (() => Promise<void>)[]): Promise<void> {
    const onError = (error: unknown) => log("error", "A job's clean-up failed", { ...lease, error });
    const all = async () => {
      for (const work of afterwards) await work().catch(onError);
    };
    await withGracePeriod(lease, all(), AbortSignal.abort(new Error("It took too long")), this.graceMs).catch(
      () => undefined,
    );
  }

  private stop(lease: Lease, outcome: Running["outcome"], reason: Stopped): void {
    const running = this.running.get(lease.jobId);
    if (!running || running.attempt !== lease.attempt) return;
    running.outcome = outcome;
    running.abort.abort(reason);
  }

  private outboxFor({ jobId, attempt, slot, logId }: Task): LogOutbox | undefined {
    if (logId === null) return undefined;
    const source = { jobId, attempt, deploymentId: logId };
    const from = slot === "command" ? this.journal.deliveredUntil(jobId) : null;
    const outbox = new LogOutbox(source, (frame) => this.send(frame), from);
    this.outboxes.set(keyOf(source), outbox);
    return outbox;
  }

  private logDelivered(lease: Lease, lastSeq: number): void {
    const outbox = this.outboxes.get(keyOf(lease));
    outbox?.acknowledge(lastSeq);
    if (outbox && this.running.get(lease.jobId)?.slot === "command")
      this.journal.delivered(lease.jobId, outbox.position);
  }

  private closeOutbox(lease: Lease): void {
    this.outboxes.get(keyOf(lease))?.close();
    this.outboxes.delete(keyOf(lease));
  }

  private sendReports(): void {
    for (const report of this.journal.unacknowledged()) this.send(report);
  }

  /** Included in ready messages from now on. */
  ingressReplaced(at: Date): void {
    this.ingressReplacedAt = at.toISOString();
    this.sayReady();
  }

  /** Jobs wait in the queue for an engine that does not answer: here they would fail. */
  engineIs(answering: boolean): void {
    this.engineAnswers = answering;
    this.sayReady({ slots: answering ? this.slots.less(0) : 0 });
  }

  private sayReady(changed?: { slots: number }): void {
    if (this.stopping) return;
    const free = (slots: Slots, slot: Slot) =>
      this.engineAnswers
        ? slots.less([...this.running.values()].filter((one) => one.slot === slot).length)
        : 0;
    this.send({
      type: "ready",
      free: free(this.slots, "job"),
      freeCommands: free(this.commandSlots, "command"),
      freeShort: free(this.shortSlots, "short"),
      ...changed,
      ...(this.ingressReplacedAt !== undefined && { ingressReplacedAt: this.ingressReplacedAt }),
    });
  }
}

/** A semaphore; waiters are served in order. */
class Slots {
  private readonly count: number;
  private taken = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(count: number) {
    this.count = count;
  }

  less(used: number): number {
    return Math.max(0, this.count - used);
  }

  /** @param work may leave its slot before it has ended */
  async use(work: (leave: () => void) => Promise<void>): Promise<void> {
    if (this.taken >= this.count) await new Promise<void>((resolve) => this.waiting.push(resolve));
    else this.taken++;
    let hasLeft = false;
    const leave = () => {
      if (hasLeft) return;
      hasLeft = true;
      // Passes the slot to the next waiter, or releases it.
      const next = this.waiting.shift();
      if (next) next();
      else this.taken--;
    };
    try {
      await work(leave);
    } finally {
      leave();
    }
  }
}

const lateCommand = "The host did not finish this in time: ask the operator about the host.";

const keyOf = ({ jobId, attempt }: Lease): string => `${jobId}:${attempt}`;

const leaseOf = ({ jobId, attempt }: Lease): Lease => ({ jobId, attempt });

const longSlots = new Slots(Number.POSITIVE_INFINITY);
