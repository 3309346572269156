import { once } from "node:events";
import type { Fingerprint } from "../../../protocol/agent/backups.ts";
import type { DatabaseSpec } from "../../../protocol/agent/jobs.ts";
import { refusalIn, ServerRefusal } from "../server-refusal.ts";
import type { Engine, Piped } from "../../docker/engine.ts";
import { JobError } from "../../job.ts";

/** A database server in its container. */
export type Server = { engine: Engine; id: string; spec: DatabaseSpec; signal: AbortSignal };

/** Facts about the backup that a restore needs beside its bytes. */
export type Filling = { databaseName: string } & Pick<Fingerprint, "tables" | "settings" | "extensions">;

/** How one type of database is copied, restored and compared. */
export type Copier = {
  /** Passes on the bytes of a copy and returns what the database held at the very moment of the copy. */
  copy(server: Server, take: (bytes: AsyncIterable<Buffer>) => Promise<void>): Promise<Fingerprint>;
  /** @param wanted the fingerprint to compare with */
  fingerprint(server: Server, wanted: Fingerprint): Promise<Fingerprint>;
  /** Fills the server's empty database. @throws UnfitError if the server rejects the bytes */
  fill?(server: Server, bytes: AsyncIterable<Buffer>, from: Filling): Promise<void>;
  /**
   * Another way to fill it, slower and more lenient, once `fill` was rejected or filled it with something else. Takes
   * the bytes several times. @throws UnfitError if the server rejects them
   */
  refill?(server: Server, bytes: () => AsyncIterable<Buffer>, from: Filling): Promise<void>;
  /** Those of the fingerprint's `objects` that need not be what they were after `refill`. */
  computedAnew?: string[];
  /** Replaces `fill`: the bytes are a file that a server with this command loads at startup. */
  seed?: { file: string; command: string[]; ready: { command: string[]; says: string } };
  /** Prepares the filled server's volume for the database to run on. */
  settle?(server: Server): Promise<void>;
  /** Options that speed up a temporary server at the cost of durability. */
  hasty?: string[];
  /** Options of a server being filled. */
  filling?: string[];
  /** The memory of a server being filled, because rows are larger in transit than at rest. */
  roomyMb?(packMb: number): number;
};

/** The program rejected its input. */
export class UnfitError extends Error {
  override name = "UnfitError";
}

/** Runs a program beside a server: when memory is short, the kernel kills it and not the server. */
export const endedFirst = (command: string[]): string[] => [
  "sh",
  "-c",
  'echo 1000 >/proc/self/oom_score_adj; exec "$@"',
  "sh",
  ...command,
];
/** The exit code of a program that the kernel killed. */
const killed = 137;

/** @throws Error with the reason if the program failed */
export async function demandSuccess(name: string, piped: Piped): Promise<void> {
  const { exitCode, stderr } = await piped.ended();
  if (exitCode === killed)
    throw new JobError("Copying it needed more memory than its pack has left: choose a larger pack.");
  if (exitCode !== 0)
    throw new ServerRefusal(
      refusalIn(stderr),
      `${name} ended with ${exitCode}: ${stderr.trim().slice(0, 500)}`,
    );
}

/** The program's output. @throws Error with its first words at the end if it failed */
export async function* outputOf(name: string, piped: Piped): AsyncGenerator<Buffer> {
  yield* piped.output;
  await demandSuccess(name, piped);
}

/** A dump whose first bytes, at least this many of them or all, are changed. */
export async function* withHead(
  bytes: AsyncIterable<Buffer>,
  headBytes: number,
  changed: (head: Buffer) => Buffer,
): AsyncGenerator<Buffer> {
  let head: Buffer | null = Buffer.alloc(0);
  for await (const chunk of bytes) {
    if (head === null) {
      yield chunk;
      continue;
    }
    head = Buffer.concat([head, chunk]);
    if (head.length < headBytes) continue;
    yield changed(head);
    head = null;
  }
  if (head !== null) yield changed(head);
}

/** Writes bytes into a program as fast as it reads them and waits for its end. @throws UnfitError if it rejects them */
export async function feed(
  name: string,
  piped: Piped,
  bytes: AsyncIterable<Buffer>,
  onOutput: (bytes: Buffer) => void = () => undefined,
): Promise<void> {
  const said = (async () => {
    for await (const output of piped.output) onOutput(output);
    return piped.ended();
  })();
  let over = false;
  const refused = said.then((end) => {
    over = true;
    return end;
  });
  refused.catch(() => undefined);
  const gone = new Promise<void>((resolve) => {
    piped.input.once("error", () => resolve());
    piped.input.once("close", () => resolve());
  });
  try {
    for await (const chunk of bytes) {
      if (over || piped.input.destroyed) break;
      if (!piped.input.write(chunk))
        await Promise.race([once(piped.input, "drain").catch(() => undefined), refused, gone]);
    }
    piped.input.end();
  } catch (error) {
    // The input is incomplete: closing keeps the program from taking it as complete.
    piped.close();
    throw error;
  }
  const { exitCode, stderr } = await refused;
  if (exitCode === killed) throw new Error(`${name} was killed: out of memory`);
  if (exitCode !== 0) throw new UnfitError(`${name} ended with ${exitCode}: ${refusalIn(stderr)}`);
}
