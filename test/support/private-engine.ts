import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Engine } from "../../agent/docker/engine.ts";
import { createEngine } from "../../agent/docker/client.ts";
import type { Machine } from "./test-network.ts";

export type PrivateEngine = { engine: Engine; socketPath: string; end(): Promise<void> };

/**
 * A test's own engine: operations on a whole engine do not affect others.
 * @param machine its network; null: it has none
 */
export async function startPrivateEngine(machine: Machine | null = null): Promise<PrivateEngine> {
  const folder = mkdtempSync(join(tmpdir(), "berth-engine-"));
  const at = (name: string) => join(folder, name);
  const socketPath = at("socket");
  const flags = machine
    ? []
    : ["--bridge", "none", "--iptables=false", "--ip-forward=false", "--ip-masq=false"];
  const files = ["--pidfile", at("pid"), "--data-root", at("data"), "--exec-root", at("exec")];
  // In its own network namespace, because an engine without a bridge removes docker0, whoever uses it; in its own
  // mount namespace, because newer engines leave mounts; and it ends with us.
  const unshare = ["unshare", "--mount", ...(machine ? [] : ["--net"])];
  const program = [...unshare, "dockerd", ...flags, ...files, "--host", `unix://${socketPath}`];
  const placed = machine ? machine.within(...program).flat() : program;
  const daemon = spawn("setpriv", ["--pdeathsig", "TERM", ...placed], { stdio: "ignore" });
  const exited = once(daemon, "exit");
  const end = async () => {
    daemon.kill("SIGTERM");
    await exited;
    rmSync(folder, { recursive: true });
  };
  const engine = createEngine({ socketPath });
  for (const until = Date.now() + 60_000; ;) {
    const answers = await engine.ping().then(
      () => true,
      () => false,
    );
    if (answers) return { engine, socketPath, end };
    if (daemon.exitCode !== null || Date.now() > until) {
      await end();
      throw new Error("The test's own engine did not start");
    }
    await delay(100);
  }
}
