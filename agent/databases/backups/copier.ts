import { once } from "node:events";
import type { Fingerprint } from "../../../protocol/agent/backups.ts";
import type { DatabaseSpec } from "../../../protocol/agent/jobs.ts";
import { refusalIn, ServerRefusal } from "../server-refusal.ts";
import type { Engine, Piped } from "../../docker/engine.ts";
import { JobError } from "../../job.ts";

/** A database server in its container. */
export type Server = { engine: Engine; id: string; spec: DatabaseSpec; signal: AbortSignal };

/** What is said of a backup's bytes. */
export type Filling = { databaseName: string } & Pick<Fingerprint, "settings" | "extensions">;

/** How one kind of database is copied out, brought in and compared. */
export type Copier = {
  /** Hands on the bytes of a copy, and answers what the database held at the very moment of the copy. */
  copy(server: Server, take: (bytes: AsyncIterable<Buffer>) => Promise<void>): Promise<Fingerprint>;
  /** @param wanted what it is to be compared with */
  fingerprint(server: Server, wanted: Fingerprint): Promise<Fingerprint>;
  /** Fills the server's empty database. @throws UnfitError when the bytes are none it can be filled with */
  fill?(server: Server, bytes: AsyncIterable<Buffer>, from: Filling): Promise<void>;
  /** Instead of filling: the bytes are a file that a server of this command reads when it starts. */
  seed?: { file: string; command: string[]; ready: { command: string[]; says: string } };
  /** The filled server is one whose volume the database may run on. */
  settle?(server: Server): Promise<void>;
  /** Options with which a server that is thrown away anyway is faster. */
  hasty?: string[];
  /** What a server that is filled needs beyond the database's own, for rows that are larger on their way than in their place. */
  roomy?: { options: string[]; memoryMb(packMb: number): number };
};

/** The program refused what it was given. */
export class UnfitError extends Error {
  override name = "UnfitError";
}

/** A program beside a server: short of memory, the kernel ends it and not the server. */
export const endedFirst = (command: string[]): string[] => [
  "sh",
  "-c",
  'echo 1000 >/proc/self/oom_score_adj; exec "$@"',
  "sh",
  ...command,
];
/** Of a program that the kernel ended. */
const killed = 137;

/** @throws Error with the reason when it failed */
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

/** What it prints, to an end in order. @throws Error with its first words instead of ending when it failed */
export async function* outputOf(name: string, piped: Piped): AsyncGenerator<Buffer> {
  yield* piped.output;
  await demandSuccess(name, piped);
}

/** Writes bytes into a program as fast as it takes them, and waits for its end. @throws UnfitError when it refuses them */
export async function feed(name: string, piped: Piped, bytes: AsyncIterable<Buffer>): Promise<void> {
  const said = (async () => {
    for await (const _ of piped.output);
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
    // Half of it is in: the program must not take that for all.
    piped.close();
    throw error;
  }
  const { exitCode, stderr } = await refused;
  if (exitCode === killed) throw new Error(`${name} was killed: out of memory`);
  if (exitCode !== 0) throw new UnfitError(`${name} ended with ${exitCode}: ${refusalIn(stderr)}`);
}
