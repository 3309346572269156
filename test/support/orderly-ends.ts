import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Engine } from "../../agent/docker/engine.ts";
import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";

/** The server's log lines after a clean shutdown, and at the next start after an unclean one. */
export const logSays: Record<DatabaseSpec["type"], { ended: RegExp; recovered: RegExp }> = {
  postgresql: { ended: /database system is shut down\s*$/, recovered: /not properly shut down|recovery in/ },
  mysql: { ended: /Shutdown complete\s*$/, recovered: /crash recovery|starting recovery|marked as crashed/i },
  redis: { ended: /ready to exit, bye bye\.*\s*$/, recovered: /Bad file format|truncated/i },
};

export async function logOf(container: string): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)("docker", ["logs", container]);
  return stdout + stderr;
}

/** An engine that keeps the log of each container that it removes. */
export function keepLogs(engine: Engine): { engine: Engine; removed: { name: string; log: string }[] } {
  const removed: { name: string; log: string }[] = [];
  const removeContainer = async (id: string) => {
    const found = await engine.inspectContainer(id);
    if (found) removed.push({ name: found.name, log: await logOf(id) });
    await engine.removeContainer(id);
  };
  return { engine: { ...engine, removeContainer }, removed };
}
