import { Duplex } from "node:stream";
import type { SharedBase } from "./dockerfile/shared.ts";
import type { Given } from "./prepare-in-reader.ts";
import type { Prepared } from "./prepare.ts";
import type { FromReader, ToReader } from "./reader.ts";
import { endReader, failureOf, onceEnded, say, type Readers } from "./readers.ts";

/**
 * `prepareBuild` in a process of its own, which is ended when it takes too much: a repository is anybody's, and what it costs
 * to read is one job's, never the agent's. It starts at once, beside what `fetched` waits for, and reads after that. The process is ended
 * when `signal` is aborted before `done`. @throws JobError, and what `fetched` rejects with
 */
export async function prepareApart(
  readers: Readers,
  { accountId, ...given }: Omit<Given, "program"> & { accountId: string },
  canHave: (image: string) => Promise<boolean>,
  signal: AbortSignal,
  shared: (base: SharedBase) => Promise<string | null> = () => Promise.resolve(null),
  fetched: Promise<unknown> = Promise.resolve(),
): Promise<Prepared> {
  signal.throwIfAborted();
  const reader = readers.take(accountId);
  const failing = new AbortController();
  const streams: Duplex[] = [];
  let isOver = false;
  /** What is said later than that would be about what it reads next. */
  const tell = (message: ToReader): void => {
    if (!isOver) say(reader, message);
  };
  const leave = (): void => {
    isOver = true;
    signal.removeEventListener("abort", onAbort);
    unwatch();
    reader.off("message", onMessage);
  };
  const done = (): void => {
    if (isOver) return;
    leave();
    readers.keep(accountId, reader);
  };
  const end = (reason: Error): void => {
    if (isOver) return;
    leave();
    void endReader(reader);
    failing.abort(reason);
    reject(reason);
    for (const stream of streams) stream.destroy(reason);
  };
  const onAbort = (): void => end(signal.reason as Error);
  signal.addEventListener("abort", onAbort, { once: true });
  const send = (): Duplex => {
    const stream = streams.length;
    const duplex = new Duplex({
      read: () => tell({ type: "next", stream }),
      write(bytes: Uint8Array, _encoding, done) {
        tell({ type: "heard", stream, bytes });
        done();
      },
    });
    streams.push(duplex);
    if (failing.signal.aborted) duplex.destroy(failing.signal.reason as Error);
    return duplex;
  };
  const { promise, resolve, reject } = Promise.withResolvers<Prepared>();
  const unwatch = onceEnded(reader, readers.limits, end);
  const onMessage = (message: FromReader) => {
    switch (message.type) {
      case "canHave":
        return void canHave(message.image).then((has) => tell({ type: "has", has }), end);
      case "shared":
        return void shared(message.base).then((name) => tell({ type: "name", name }), end);
      case "prepared":
        return resolve({ ...message.prepared, context: { send, failed: failing.signal, done } });
      case "piece":
        return void streams[message.stream]?.push(message.bytes);
      case "failed":
        return end(failureOf(message));
      case "described":
      case "free":
        return end(new Error(`A reader answered ${message.type}`));
      default:
        message satisfies never;
    }
  };
  reader.on("message", onMessage);
  tell({ type: "read", given: { program: "prepare", ...given } });
  fetched.then(() => tell({ type: "begin" }), end);
  return promise;
}
