import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { JobError } from "../job.ts";
import type { Failed, FromReader, ToReader } from "./reader.ts";
import { readerCode } from "./reader-code.ts";

/** What reading one repository may take: memory, and time of a processor. Waiting does not count. */
export const readerLimits = { memoryMb: 256, cpuSeconds: 60 };
export type ReaderLimits = typeof readerLimits;

/** The kernel ends it after that much of a processor, also when the agent has ended, and before others when memory is short. */
const bounded =
  'ulimit -c 0; ulimit -S -t "$1"; { echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null; shift; exec "$@"';

/** Nothing is said to one that has ended. */
export function say(reader: ChildProcess, message: ToReader): void {
  if (reader.connected) reader.send(message, () => undefined);
}

/** What a reader failed for, to be thrown here. */
export const failureOf = ({ message, isForOwner }: Failed): Error =>
  isForOwner ? new JobError(message) : new Error(message);

/** Tells why a reader ended that nobody has ended. @returns stops that */
export function onceEnded(
  reader: ChildProcess,
  limits: ReaderLimits,
  tell: (reason: Error) => void,
): () => void {
  const onExit = (code: number | null, signal: NodeJS.Signals | null) => tell(endOf(limits, signal ?? code));
  reader.once("error", tell).once("exit", onExit);
  return () => void reader.off("error", tell).off("exit", onExit);
}

function endOf({ memoryMb, cpuSeconds }: ReaderLimits, end: NodeJS.Signals | number | null): Error {
  if (end === "SIGXCPU")
    return new JobError(
      `What the repository holds took more than ${cpuSeconds} seconds of computing to read, which no usual one does: make the files that say how it is built shorter, and .dockerignore simpler.`,
    );
  // How V8 ends a process that has no memory left.
  if (end === "SIGABRT" || end === "SIGTRAP")
    return new JobError(
      `What the repository holds took more than ${memoryMb} MB of memory to read, which no usual one does: make the files that say how it is built smaller.`,
    );
  return new Error(`The process that read the repository ended with ${end}`);
}

/** Resolves once nothing of it reads or writes any more. */
export async function endReader(reader: ChildProcess): Promise<void> {
  if (reader.exitCode !== null || reader.signalCode !== null) return;
  const ended = once(reader, "exit");
  reader.kill("SIGKILL");
  await ended;
}

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
  readonly limits: ReaderLimits;
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

  take(accountId: string): ChildProcess {
    const reader = this.freeFor(accountId);
    if (!reader) return this.open();
    this.kept.get(reader)?.forget();
    reader.ref();
    reader.channel?.ref();
    return reader;
  }

  /** Takes back a reader that has said all that is waited for; it is taken again once it has nothing left to do. */
  keep(accountId: string, reader: ChildProcess): void {
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
