import { Duplex } from "node:stream";
import type { SharedBase } from "./dockerfile/shared.ts";
import type { Given } from "./prepare-in-reader.ts";
import type { Prepared } from "./prepare.ts";
import type { Readers, Told } from "./readers.ts";

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
  const failing = new AbortController();
  const streams: Duplex[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<Prepared>();
  const send = (): Duplex => {
    const stream = streams.length;
    const duplex = new Duplex({
      read: () => reading.tell({ type: "next", stream }),
      write(bytes: Uint8Array, _encoding, done) {
        reading.tell({ type: "heard", stream, bytes });
        done();
      },
    });
    streams.push(duplex);
    if (failing.signal.aborted) duplex.destroy(failing.signal.reason as Error);
    return duplex;
  };
  const hear = (message: Told): void => {
    switch (message.type) {
      case "canHave":
        return void canHave(message.image).then((has) => reading.tell({ type: "has", has }), reading.end);
      case "shared":
        return void shared(message.base).then((name) => reading.tell({ type: "name", name }), reading.end);
      case "prepared":
        return resolve({
          ...message.prepared,
          context: { send, failed: failing.signal, done: reading.done },
        });
      case "piece":
        return void streams[message.stream]?.push(message.bytes);
      case "described":
      case "free":
        return reading.end(new Error(`A reader answered ${message.type}`));
      default:
        message satisfies never;
    }
  };
  const failed = (reason: Error): void => {
    failing.abort(reason);
    reject(reason);
    for (const stream of streams) stream.destroy(reason);
  };
  const reading = readers.read(accountId, { program: "prepare", ...given }, signal, hear, failed);
  fetched.then(() => reading.tell({ type: "begin" }), reading.end);
  return promise;
}
