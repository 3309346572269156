import type { Engine, Program } from "../docker/engine.ts";
import { refusalIn } from "./server-refusal.ts";

/** Runs a program in a server's container. @throws if it fails */
export async function run(
  { engine }: { engine: Pick<Engine, "execute"> },
  id: string,
  program: Program,
  signal: AbortSignal,
): Promise<string> {
  const { exitCode, stdout, stderr } = await engine.execute(id, program, signal);
  if (exitCode !== 0) throw new Error(`${program.command[0]} ended with ${exitCode}: ${refusalIn(stderr)}`);
  return stdout;
}
