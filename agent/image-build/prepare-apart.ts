import { Duplex } from "node:stream";
import { JobError } from "../job.ts";
import type { SharedBase } from "./dockerfile/shared.ts";
import type { FromThread, Given, ToThread } from "./prepare-thread.ts";
import type { Prepared } from "./prepare.ts";
import type { Failed } from "./thread.ts";
import { ask, failureOf, readers, type threadLimits } from "./threads.ts";

const lookMs = 250;

/**
 * `prepareBuild` in a thread of its own, which is ended when it takes too much: a repository is anybody's, and what it costs
 * to read is one job's, never the agent's. It starts at once, beside what `fetched` waits for, and reads after that. The thread is ended
 * when `signal` is aborted before `done`. @throws JobError, and what `fetched` rejects with
 */
export async function prepareApart(
  { accountId, ...given }: Omit<Given, "program"> & { accountId: string },
  canHave: (image: string) => Promise<boolean>,
  signal: AbortSignal,
  threads = readers,
  shared: (base: SharedBase) => Promise<string | null> = () => Promise.resolve(null),
  fetched: Promise<unknown> = Promise.resolve(),
): Promise<Prepared> {
  signal.throwIfAborted();
  const { limits } = threads;
  const thread = threads.take(accountId);
  const busyMs = () => thread.performance.eventLoopUtilization().active;
  const busyBeforeMs = busyMs();
  const own = ask(thread, { program: "prepare", ...given });
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  const say = (message: ToThread) => own.postMessage(message);
  const failing = new AbortController();
  const streams: Duplex[] = [];
  let isOver = false;
  const leave = (): void => {
    isOver = true;
    clearInterval(watch);
    signal.removeEventListener("abort", onAbort);
    thread.off("error", onError).off("exit", onExit);
    own.close();
  };
  const done = (): void => {
    if (isOver) return;
    leave();
    threads.keep(accountId, thread);
  };
  const end = (reason: Error): void => {
    if (isOver) return;
    leave();
    void thread.terminate();
    failing.abort(reason);
    reject(reason);
    for (const stream of streams) stream.destroy(reason);
  };
  const onAbort = (): void => end(signal.reason as Error);
  signal.addEventListener("abort", onAbort, { once: true });
  const watch = setInterval(() => {
    if (busyMs() - busyBeforeMs > limits.busyMs) end(tooLong(limits));
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
  const onError = (error: NodeJS.ErrnoException): void =>
    end(error.code === "ERR_WORKER_OUT_OF_MEMORY" ? tooLarge(limits) : error);
  const onExit = (): void => end(new Error("The thread that read the repository ended"));
  thread.once("error", onError).once("exit", onExit);
  own.on("message", (message: FromThread | Failed) => {
    switch (message.type) {
      case "canHave":
        return void canHave(message.image).then((has) => say({ type: "has", has }), end);
      case "shared":
        return void shared(message.base).then((name) => say({ type: "name", name }), end);
      case "prepared":
        return resolve({ ...message.prepared, context: { send, failed: failing.signal, done } });
      case "piece":
        return void streams[message.stream]?.push(message.bytes);
      case "failed":
        return end(failureOf(message));
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
