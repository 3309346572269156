import type { Engine } from "../../docker/engine.ts";

/**
 * Set in the environment of every program of a backup, so that strays of a previous agent can be told from the
 * server.
 */
export const strayMark = "BERTH_BACKUP=1";

const script = `for process in /proc/[0-9]*; do
  if tr '\\0' '\\n' <"$process/environ" 2>/dev/null | grep -qx "$1"; then kill -9 "\${process#/proc/}"; fi
done`;

const timeoutMs = 30_000;

/**
 * Kills the programs that an earlier backup left running in the database's container; the server then ends their
 * sessions.
 */
export async function endStrays(engine: Engine, containerId: string): Promise<void> {
  const program = { command: ["sh", "-c", script, "end-strays", strayMark] };
  await engine.execute(containerId, program, AbortSignal.timeout(timeoutMs));
}
