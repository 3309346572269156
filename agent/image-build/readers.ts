import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { JobError } from "../job.ts";
import type { Heard } from "./prepare-in-reader.ts";
import type { FromReader, Given, ToReader } from "./reader.ts";
import { readerCode } from "./reader-code.ts";

/** What reading one repository may take: memory, and time of a processor. Waiting does not count. */
const readerLimits = { memoryMb: 256, cpuSeconds: 60 };
export type ReaderLimits = typeof readerLimits;

/** The kernel ends it after that much of a processor, also when the agent has ended, and before others when memory is short. */
const bounded =
  'ulimit -c 0; ulimit -S -t "$1"; { echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null; shift; exec "$@"';

function endOf({ memoryMb, cpuSeconds }: ReaderLimits, end: NodeJS.Signals | number | null): Error {
  if (end === "SIGXCPU")
    return new JobError(
      `The repository took more than ${cpuSeconds} seconds of CPU time to read, far more than usual: make the files that say how it is built shorter, and .dockerignore simpler.`,
    );
  // How V8 ends a process that has no memory left.
  if (end === "SIGABRT" || end === "SIGTRAP")
    return new JobError(
      `The repository took more than ${memoryMb} MB of memory to read, far more than usual: make the files that say how it is built smaller.`,
    );
  return new Error(`The process that read the repository ended with ${end}`);
}

/** Nothing is said to one that has ended. */
function say(reader: ChildProcess, message: ToReader): void {
  if (reader.connected) reader.send(message, () => undefined);
}

async function endReader(reader: ChildProcess): Promise<void> {
  if (reader.exitCode !== null || reader.signalCode !== null) return;
  const ended = once(reader, "exit");
  reader.kill("SIGKILL");
  await ended;
}

/** What a reader says of one repository. */
export type Told = Exclude<FromReader, { type: "failed" }>;
/** One repository's turn at a reader. Nothing is said or heard once it is over. */
type Reading = {
  tell: (message: Heard) => void;
  /** Nothing more is wanted of it. */
  done: () => void;
  /** Ends the reader with it, and fails for `reason`. */
  end: (reason: Error) => void;
};

/** How long a reader that has done its work waits for more, and how many do. Each takes some 20 MB. */
export const keptMs = 120_000;
const mostKept = 3;

type Kept = { accountId: string; isFree: boolean; end: () => void; forget: () => void };

/**
 * Starting a process takes more of a processor than reading most repositories, so one that has done its work waits a while for
 * another repository of its account. Never of another account: what it has read may be anything.
 */
export class Readers {
  private readonly directory: string;
  private isWritten = false;
  private readonly limits: ReaderLimits;
  private readonly forMs: number;
  private readonly kept = new Map<ChildProcess, Kept>();

  /** @param directory its own, for what makes a reader start fast */
  constructor(directory: string, limits: Partial<ReaderLimits> = {}, forMs = keptMs) {
    this.directory = directory;
    this.limits = { ...readerLimits, ...limits };
    this.forMs = forMs;
  }

  /** The one that has read for this account and waits. */
  freeFor(accountId: string): ChildProcess | undefined {
    return [...this.kept].find(([, kept]) => kept.isFree && kept.accountId === accountId)?.[0];
  }

  /**
   * Has a repository read until `done`. The reader is ended when `signal` is aborted before. @param failed is told why, by a JobError where the
   * repository takes too much or is not as it should be; `ended` resolves once nothing of the reader reads or writes any more
   */
  read(
    accountId: string,
    given: Given,
    signal: AbortSignal,
    hear: (message: Told) => void,
    failed: (reason: Error, ended: Promise<void>) => void,
  ): Reading {
    signal.throwIfAborted();
    const reader = this.take(accountId);
    let isOver = false;
    const leave = (): void => {
      isOver = true;
      signal.removeEventListener("abort", onAbort);
      reader.off("message", onMessage).off("error", end).off("exit", onExit);
    };
    const end = (reason: Error): void => {
      if (isOver) return;
      leave();
      failed(reason, endReader(reader));
    };
    const onAbort = (): void => end(signal.reason as Error);
    const onExit = (code: number | null, by: NodeJS.Signals | null): void =>
      end(endOf(this.limits, by ?? code));
    const onMessage = (message: FromReader): void => {
      if (message.type === "failed")
        end(message.isForOwner ? new JobError(message.message) : new Error(message.message));
      else hear(message);
    };
    signal.addEventListener("abort", onAbort);
    reader.on("message", onMessage).once("error", end).once("exit", onExit);
    say(reader, { type: "read", given });
    return {
      tell: (message) => {
        if (!isOver) say(reader, message);
      },
      done: () => {
        if (isOver) return;
        leave();
        this.keep(accountId, reader);
      },
      end,
    };
  }

  take(accountId: string): ChildProcess {
    const reader = this.freeFor(accountId);
    if (!reader) return this.open();
    this.kept.get(reader)?.forget();
    reader.ref();
    reader.channel?.ref();
    return reader;
  }

  /** It is taken again once it has nothing left to do. */
  private keep(accountId: string, reader: ChildProcess): void {
    const onMessage = (message: FromReader): void => {
      if (message.type !== "free") return;
      // The kernel counts all that it has read.
      if (message.cpuSeconds > this.limits.cpuSeconds / 3) end();
      else kept.isFree = true;
    };
    const forget = (): void => {
      this.kept.delete(reader);
      clearTimeout(timer);
      reader.off("message", onMessage).off("exit", forget);
    };
    const end = (): void => {
      forget();
      reader.kill("SIGKILL");
    };
    const timer = setTimeout(end, this.forMs).unref();
    const kept: Kept = { accountId, isFree: false, end, forget };
    this.kept.set(reader, kept);
    reader.on("message", onMessage).once("exit", forget).unref();
    reader.channel?.unref();
    say(reader, { type: "over" });
    const [oldest] = this.kept.values();
    if (this.kept.size > mostKept) oldest?.end();
  }

  /** A process, as V8 ends a whole one where it finds no memory for a thread of it. */
  private open(): ChildProcess {
    const { memoryMb, cpuSeconds } = this.limits;
    const node = [
      process.execPath,
      "--disable-warning=ExperimentalWarning",
      `--max-old-space-size=${memoryMb}`,
    ];
    const args = ["-c", bounded, "sh", String(cpuSeconds), ...node, this.program()];
    const reader = spawn("/bin/sh", args, {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      serialization: "advanced",
      // Neither the host's token nor the flags of this process are its business.
      env: { NODE_COMPILE_CACHE: join(this.directory, "compiled") },
    });
    // Whoever waits for it hears of its end.
    return reader.on("error", () => undefined);
  }

  private program(): string {
    if (readerCode === null) return join(import.meta.dirname, "reader.ts");
    const file = join(this.directory, "reader.cjs");
    if (!this.isWritten) {
      // Of the agent before, which may have been of another version.
      rmSync(this.directory, { recursive: true, force: true });
      mkdirSync(this.directory, { recursive: true, mode: 0o700 });
      writeFileSync(file, readerCode());
      this.isWritten = true;
    }
    return file;
  }
}
