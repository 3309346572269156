import { Duplex } from "node:stream";
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
 * to read is one job's, never the agent's. It starts at once, beside what `fetched` waits for, and reads after that. It goes on until
 * `signal` is aborted. @throws JobError, and what `fetched` rejects with
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
  const failing = new AbortController();
  const streams: Duplex[] = [];
  const end = (reason: Error): void => {
    if (failing.signal.aborted) return;
    clearInterval(watch);
    signal.removeEventListener("abort", onAbort);
    void thread.terminate();
    failing.abort(reason);
    reject(reason);
    for (const stream of streams) stream.destroy(reason);
  };
  const onAbort = (): void => end(signal.reason as Error);
  signal.addEventListener("abort", onAbort, { once: true });
  const watch = setInterval(() => {
    if (thread.performance.eventLoopUtilization().active > limits.busyMs) end(tooLong(limits));
  }, lookMs);
  const send = (): Duplex => {
    const stream = streams.length;
    const duplex = new Duplex({
      read: () => say({ type: "next", stream }),
      write(bytes: Uint8Array, _encoding, done) {
        say({ type: "heard", stream, bytes });
        done();
      },
    });
    streams.push(duplex);
    if (failing.signal.aborted) duplex.destroy(failing.signal.reason as Error);
    return duplex;
  };
  const { promise, resolve, reject } = Promise.withResolvers<Prepared>();
  thread.once("error", (error: NodeJS.ErrnoException) =>
    end(error.code === "ERR_WORKER_OUT_OF_MEMORY" ? tooLarge(limits) : error),
  );
  thread.once("exit", () => end(new Error("The thread that read the repository ended")));
  thread.on("message", (message: FromThread | Failed) => {
    switch (message.type) {
      case "canHave":
        return void canHave(message.image).then((has) => say({ type: "has", has }), end);
      case "shared":
        return void shared(message.base).then((name) => say({ type: "name", name }), end);
      case "prepared":
        return resolve({ ...message.prepared, context: { send, failed: failing.signal } });
      case "piece":
        return void streams[message.stream]?.push(message.bytes);
      case "failed":
        return end(message.isForOwner ? new JobError(message.message) : new Error(message.message));
      default:
        message satisfies never;
    }
  });
  fetched.then(() => say({ type: "begin" }), end);
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
