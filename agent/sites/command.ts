import { constants, uptime } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import type { JobResult } from "../../protocol/agent/jobs.ts";
import type { ContainerState, Engine } from "../docker/engine.ts";
import { lastEntries } from "../docker/last-entries.ts";
import { engineTimeBefore, LogParser, type LogEntry } from "../docker/log-parser.ts";
import { stopGraceSeconds } from "../docker/specs.ts";
import { Stopped } from "../failure.ts";
import type { Host } from "../host.ts";
import { JobError, type JobRun } from "../job.ts";
import { label } from "../docker/labels.ts";

/** Between the end of what could be followed and the next look at it. */
const againMs = 200;
const engineAgainMs = 1000;
const removeMs = 60_000;
/** Of a log that is full. */
const lastLines = 1000;

const interrupted =
  "The host was interrupted while this ran, and it is not run again automatically: check what it did, then run it again.";

/** Runs a command further whose container an agent before this one has started. */
export function goOnWithCommand(host: Host, id: string, job: JobRun): Promise<JobResult<"site.command">> {
  removeAfterwards(host.engine, id, job);
  return attendCommand(host, id, job);
}

/** Removes a command's container once the job's result is journaled. */
export function removeAfterwards(engine: Engine, idOrName: string, job: JobRun): void {
  job.afterwards(() => patiently(() => engine.removeContainer(idOrName), AbortSignal.timeout(removeMs)));
}

/**
 * Runs a command's container, or goes on with one that runs or has run: its log, its time limit, its end. A container runs
 * once: one that has started is never started again.
 */
export async function attendCommand(host: Host, id: string, job: JobRun): Promise<JobResult<"site.command">> {
  const { engine } = host;
  let container = await existing(engine, id);
  const startedAt = container.startedAt;
  if (startedAt === null) {
    await host.isolation.demand();
    job.signal.throwIfAborted();
    await engine.startContainer(id);
    container = await existing(engine, id);
  }
  if (wasInterrupted(container, new Date(Date.now() - uptime() * 1000))) throw new JobError(interrupted);
  const timeoutSeconds = Number(container.labels[label.timeout]);
  // The engine's clock counts only for one that ran before this agent came to it: clocks are set.
  const ranMs = startedAt === null ? 0 : Math.max(0, Date.now() - startedAt.getTime());
  const left = new AbortController();
  let isOverdue = false;
  const stop = (): void =>
    void patiently(() => engine.stopContainer(id, stopGraceSeconds), left.signal).catch(() => undefined);
  const limit = setTimeout(
    () => {
      isOverdue = true;
      stop();
    },
    Math.max(0, timeoutSeconds * 1000 - ranMs),
  );
  const onAbort = (): void => {
    const { reason } = job.signal as { reason: unknown };
    // The next agent finds it.
    if (reason instanceof Stopped && reason.kind === "shutdown") left.abort(reason);
    else stop();
  };
  job.signal.addEventListener("abort", onAbort);
  if (job.signal.aborted) onAbort();
  try {
    const [{ ended, wasEngineAway }] = await Promise.all([
      untilEnded(engine, id, left.signal),
      follow(engine, id, job, left.signal),
    ]);
    job.signal.throwIfAborted();
    if (isOverdue)
      return {
        exitCode: null,
        error: `It did not end within ${timeoutSeconds} seconds and was stopped: make it shorter, or give it more time with timeoutSeconds.`,
      };
    if (wasEngineAway && endedByEngine(ended)) throw new JobError(interrupted);
    return await outcomeOf(engine, ended);
  } finally {
    clearTimeout(limit);
    job.signal.removeEventListener("abort", onAbort);
    left.abort();
  }
}

/** A reboot ends a container without its doing, and the engine says so with the time of its own start. */
export const wasInterrupted = (
  { running, startedAt, finishedAt }: Pick<ContainerState, "running" | "startedAt" | "finishedAt">,
  bootedAt: Date,
): boolean =>
  !running &&
  startedAt !== null &&
  startedAt < bootedAt &&
  (finishedAt === null || finishedAt < startedAt || finishedAt >= bootedAt);

/** An engine that ends, or starts again, ends its containers. */
const endedByEngine = ({ exitCode, oomKilled }: Pick<ContainerState, "exitCode" | "oomKilled">): boolean =>
  !oomKilled && [constants.signals.SIGTERM, constants.signals.SIGKILL].includes(exitCode - 128);

async function existing(engine: Engine, id: string): Promise<ContainerState> {
  const container = await engine.inspectContainer(id);
  if (!container)
    throw new JobError(
      "Its container was removed before this had ended, because the site was deleted or by somebody: check what it did, then run it again.",
    );
  return container;
}

/** While the engine restarts it does not answer. */
async function patiently<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (error instanceof JobError) throw error;
      await delay(engineAgainMs, undefined, { signal });
    }
  }
}

async function untilEnded(
  engine: Engine,
  id: string,
  signal: AbortSignal,
): Promise<{ ended: ContainerState; wasEngineAway: boolean }> {
  let wasEngineAway = false;
  for (;;)
    try {
      const ended = await existing(engine, id);
      if (!ended.running) return { ended, wasEngineAway };
      await engine.waitForExit(id, signal);
    } catch (error) {
      if (error instanceof JobError) throw error;
      wasEngineAway = true;
      await delay(engineAgainMs, undefined, { signal });
    }
}

/** Each line once, until the container has ended; where the log is full before, then its last lines. */
async function follow(engine: Engine, id: string, job: JobRun, signal: AbortSignal): Promise<void> {
  let last = job.printedUntil;
  const print = (entries: LogEntry[]): boolean =>
    entries.every((entry) => {
      if (last !== null && entry.at <= last) return true;
      if (!job.print(entry)) return false;
      last = entry.at;
      return true;
    });
  const printLast = async (): Promise<void> => {
    await untilEnded(engine, id, signal);
    const entries = await patiently(() => lastEntries(engine, id, { tail: lastLines }), signal);
    job.printLast(entries.filter(({ at }) => last === null || at > last));
  };
  for (;;) {
    // What is followed may end before the last bytes are written: the reading that counts begins after the end.
    const { running } = await patiently(() => existing(engine, id), signal);
    const parser = new LogParser();
    const since = last === null ? null : engineTimeBefore(last);
    let isWhole = true;
    try {
      for await (const chunk of engine.followLog(id, { tail: "all", since }, signal))
        if (!print(parser.push(chunk))) return printLast();
    } catch {
      signal.throwIfAborted();
      isWhole = false;
    }
    if (isWhole && !running) return void print(parser.end());
    await delay(againMs, undefined, { signal });
  }
}

async function outcomeOf(
  engine: Engine,
  { id, exitCode, oomKilled, labels }: ContainerState,
): Promise<JobResult<"site.command">> {
  if (exitCode === 0) return { exitCode, error: null };
  if (oomKilled)
    return {
      exitCode,
      error: `exited with ${exitCode} because it used more memory than the site's pack has (${labels[label.memory]} MB): choose a larger pack or use less.`,
    };
  if (endedByEngine({ exitCode, oomKilled })) {
    // Where its site goes, its container has gone a moment later, and so has an engine that ends.
    await delay(1000);
    await existing(engine, id).catch((error: unknown) => {
      throw error instanceof JobError ? error : new JobError(interrupted);
    });
  }
  // The engine's init, which starts it, says so.
  const lines = exitCode === 127 ? await engine.lastLines(id, 3) : [];
  if (lines.some((line) => line.includes("exec sh failed")))
    return {
      exitCode,
      error: "The site's image has no sh, which commands need: use an image that has a shell.",
    };
  const signal = Object.entries(constants.signals).find(([, number]) => number === exitCode - 128)?.[0];
  return {
    exitCode,
    error: `exited with ${exitCode}${signal ? ` (${signal})` : ""}: its log says what happened.`,
  };
}
