import { Readable } from "node:stream";
import { JobError } from "../job.ts";
import type { SharedBase } from "./dockerfile/shared.ts";
import { openThread } from "./open-thread.ts";
import type { FromThread, Given, ToThread } from "./prepare-thread.ts";
import type { Prepared } from "./prepare.ts";
import type { Failed } from "./thread.ts";

/** What reading one repository may take: the thread's memory, and for how long it may compute. Waiting does not count. */
export const threadLimits = { memoryMb: 256, busyMs: 60_000 };

const lookMs = 250;

/**
 * `prepareBuild` in a thread of its own, which is ended when it takes too much: a repository is anybody's, and what it costs
 * to read is one job's, never the agent's. It starts at once, beside what `fetched` waits for, and reads after that. The context must be
 * read to its end or destroyed, or `signal` aborted. @throws JobError, and what `fetched` rejects with
 */
export async function prepareApart(
  given: Omit<Given, "program">,
  canHave: (image: string) => Promise<boolean>,
  signal: AbortSignal,
  limits = threadLimits,
  shared: (base: SharedBase) => Promise<string | null> = () => Promise.resolve(null),
  fetched: Promise<unknown> = Promise.resolve(),
): Promise<Prepared> {
  signal.throwIfAborted();
  const thread = openThread({ program: "prepare", ...given }, limits.memoryMb);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  const say = (message: ToThread) => thread.postMessage(message);
  const context = new Readable({
    read: () => say({ type: "next" }),
    destroy(error, done) {
      clearInterval(watch);
      signal.removeEventListener("abort", onAbort);
      void thread.terminate().then(() => done(error));
    },
  });
  const onAbort = (): void => void context.destroy(signal.reason as Error);
  signal.addEventListener("abort", onAbort, { once: true });
  const watch = setInterval(() => {
    if (thread.performance.eventLoopUtilization().active > limits.busyMs) context.destroy(tooLong(limits));
  }, lookMs);
  const { promise, resolve, reject } = Promise.withResolvers<Prepared>();
  // Whoever reads it hears of it from the context.
  context.once("error", reject);
  thread.once("error", (error: NodeJS.ErrnoException) =>
    context.destroy(error.code === "ERR_WORKER_OUT_OF_MEMORY" ? tooLarge(limits) : error),
  );
  let isWhole = false;
  thread.once("exit", () => {
    if (!isWhole) context.destroy(new Error("The thread that read the repository ended"));
  });
  thread.on("message", (message: FromThread | Failed) => {
    switch (message.type) {
      case "canHave":
        return void canHave(message.image).then(
          (has) => say({ type: "has", has }),
          (error: Error) => context.destroy(error),
        );
      case "shared":
        return void shared(message.base).then(
          (name) => say({ type: "name", name }),
          (error: Error) => context.destroy(error),
        );
      case "prepared":
        return resolve({ ...message.prepared, context });
      case "piece":
        isWhole = message.bytes === null;
        return void context.push(message.bytes);
      case "failed":
        return void context.destroy(
          message.isForOwner ? new JobError(message.message) : new Error(message.message),
        );
      default:
        message satisfies never;
    }
  });
  fetched.then(
    () => say({ type: "begin" }),
    (error: Error) => void context.destroy(error),
  );
  return promise;
}

const tooLong = ({ busyMs }: typeof threadLimits) =>
  new JobError(
    `What the repository holds took more than ${busyMs / 1000} seconds of computing to read, which no usual one does: make the files that say how it is built shorter, and .dockerignore simpler.`,
  );
const tooLarge = ({ memoryMb }: typeof threadLimits) =>
  new JobError(
    `What the repository holds took more than ${memoryMb} MB of memory to read, which no usual one does: make the files that say how it is built smaller.`,
  );
