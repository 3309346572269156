import type { Program } from "../docker/engine.ts";
import type { Host } from "../host.ts";
import { refusalIn } from "./refusal.ts";

/** In a server's container. @throws when it fails */
export async function run(host: Host, id: string, program: Program, signal: AbortSignal): Promise<string> {
  const { exitCode, stdout, stderr } = await host.engine.execute(id, program, signal);
  if (exitCode !== 0) throw new Error(`${program.command[0]} ended with ${exitCode}: ${refusalIn(stderr)}`);
  return stdout;
}
