import { on } from "node:events";
import { flushCompileCache } from "node:module";
import { JobError } from "../job.ts";
import type { Described } from "./inspect/describe.ts";
import type { Given as ToInspect } from "./inspect/inspect-in-reader.ts";
import type { Given as ToPrepare, Heard, Said } from "./prepare-in-reader.ts";

export type Given = ToInspect | ToPrepare;
export type ToReader =
  | { type: "read"; given: Given }
  | Heard
  /** Nobody waits for any more of it. */
  | { type: "over" };
export type FromReader =
  | { type: "described"; described: Described }
  | Said
  | { type: "failed"; message: string; isForOwner: boolean }
  /** The next one may be read. @property cpuSeconds of all that it has read */
  | { type: "free"; cpuSeconds: number };

const heard = on(process, "message");
const next = async () => (await heard.next()).value?.[0] as ToReader;
const say = (message: FromReader) => void process.send?.(message);

/** The program of the processes that read repositories, one after another; what a task does not need is not loaded. */
async function serve(): Promise<never> {
  for (;;) {
    const message = await next();
    if (message.type === "read") await read(message.given);
  }
}

async function read(given: Given): Promise<void> {
  let isOver = false;
  async function hear(): Promise<Heard | undefined> {
    if (isOver) return undefined;
    const message = await next();
    isOver = message.type === "over";
    return message.type === "over" || message.type === "read" ? undefined : message;
  }
  try {
    if (given.program === "inspect") {
      const { inspectInReader } = await import("./inspect/inspect-in-reader.ts");
      say({ type: "described", described: await inspectInReader(given) });
    } else {
      const { prepareInReader } = await import("./prepare-in-reader.ts");
      await prepareInReader(given, hear, say);
    }
  } catch (error) {
    say({
      type: "failed",
      message: error instanceof Error ? error.message : String(error),
      isForOwner: error instanceof JobError,
    });
  }
  while (!isOver) await hear();
  // The next process of this program starts with what this one has compiled.
  flushCompileCache();
  const { user, system } = process.cpuUsage();
  say({ type: "free", cpuSeconds: (user + system) / 1e6 });
}

void serve();
