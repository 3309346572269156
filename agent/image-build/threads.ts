import { join } from "node:path";
import { MessageChannel, Worker, type MessagePort } from "node:worker_threads";
import { JobError } from "../job.ts";
import type { Failed, Given, Task } from "./thread.ts";
import { threadCode } from "./thread-code.ts";

/** What reading one repository may take: the thread's memory, and for how long it may compute. Waiting does not count. */
export const threadLimits = { memoryMb: 256, busyMs: 60_000 };

/** A thread that reads repositories (`thread.ts`), with memory of its own. */
const openThread = (memoryMb: number): Worker =>
  new Worker(threadCode ?? join(import.meta.dirname, "thread.ts"), {
    eval: threadCode !== null,
    resourceLimits: { maxOldGenerationSizeMb: memoryMb },
    // Neither the host's token nor the flags of this process are its business.
    env: {},
    execArgv: [],
  });

/** Hands a task over. @returns where the thread answers */
export function ask(thread: Worker, given: Given): MessagePort {
  const { port1: own, port2: port } = new MessageChannel();
  thread.postMessage({ ...given, port } satisfies Task, [port]);
  return own;
}

/** What a thread failed for, to be thrown here. */
export const failureOf = ({ message, isForOwner }: Failed): Error =>
  isForOwner ? new JobError(message) : new Error(message);

/** How long a thread that has done its work waits for more, and how many do. Each takes some 10 MB. */
export const keptMs = 120_000;
const mostKept = 3;

/**
 * Starting a thread takes more of a processor than reading most repositories, so one that has done its work waits a while for
 * another repository of its account. Never of another account: what it has read may be anything.
 */
export class Threads {
  readonly limits: typeof threadLimits;
  private readonly forMs: number;
  private readonly kept = new Map<Worker, { accountId: string; timer: NodeJS.Timeout; end: () => void }>();

  constructor(limits: Partial<typeof threadLimits> = {}, forMs = keptMs) {
    this.limits = { ...threadLimits, ...limits };
    this.forMs = forMs;
  }

  take(accountId: string): Worker {
    const [thread] = [...this.kept].find(([, kept]) => kept.accountId === accountId) ?? [];
    if (!thread) return openThread(this.limits.memoryMb);
    this.forget(thread);
    thread.ref();
    return thread;
  }

  /** Takes back a thread that has nothing left to do. */
  keep(accountId: string, thread: Worker): void {
    const end = (): void => {
      this.forget(thread);
      void thread.terminate();
    };
    this.kept.set(thread, { accountId, timer: setTimeout(end, this.forMs).unref(), end });
    thread.once("error", end).once("exit", end).unref();
    const [oldest] = this.kept.values();
    if (this.kept.size > mostKept) oldest?.end();
  }

  private forget(thread: Worker): void {
    const kept = this.kept.get(thread);
    if (!kept) return;
    this.kept.delete(thread);
    clearTimeout(kept.timer);
    thread.off("error", kept.end).off("exit", kept.end);
  }
}

/** Those of this process, for builds and for what is asked before one. */
export const readers = new Threads();
