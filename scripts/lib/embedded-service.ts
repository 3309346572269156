import { spawn } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "./project-root.ts";
import { freePort } from "./state.ts";

export type EmbeddedService = {
  stateDirectory: string;
  env: Record<string, string>;
  /** Ends the service and removes everything it created, including on the engine. */
  stop(): Promise<void>;
};

/**
 * Runs `npm start` as a child process with its own ports and a fresh state directory; its output is shown. `beside`:
 * another service of the same run uses the engine, so that only this one's own objects can be left there by it.
 */
export async function startEmbeddedService(
  name: string,
  limits: Record<string, string>,
  { beside = false } = {},
): Promise<EmbeddedService> {
  const stateDirectory = join(projectRoot, ".berth", name);
  const flags = ["--state-dir", stateDirectory, "--discard", ...(beside ? ["--beside"] : [])];
  flags.push("--port", String(await freePort()), "--ingress-port", String(await freePort()));
  const child = spawn(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", join(projectRoot, "scripts", "start.ts"), ...flags],
    // The IPC channel ends it when this process ends in any way; its own group keeps Ctrl-C from ending it first.
    {
      detached: true,
      stdio: ["ignore", "pipe", "inherit", "ipc"],
      // Tests do not wait a minute for a sample.
      env: { ...process.env, BERTH_SAMPLE_SECONDS: "2", ...limits },
    },
  );
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  const stop = async () => {
    child.kill("SIGTERM");
    await exited;
  };
  onSignal(stop);
  await new Promise<void>((resolve, reject) => {
    let text = "";
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      process.stdout.write(chunk);
      text += chunk;
      if (/^ready /m.test(text)) resolve();
    });
    void exited.then((code) => reject(new Error(`npm start ended with ${code} before it was ready`)));
  });
  // Below the state directory, so that tests' leftovers are removed with it.
  const temporary = join(stateDirectory, "tmp");
  mkdirSync(temporary, { recursive: true });
  return {
    stateDirectory,
    env: {
      BERTH_E2E_STATE_DIRS: stateDirectory,
      TMPDIR: temporary,
    },
    async stop() {
      await stop();
      for (const made of ["tmp", "git", "state"])
        rmSync(join(stateDirectory, made), { recursive: true, force: true });
    },
  };
}

function onSignal(stop: () => Promise<void>): void {
  const end = () => void stop().then(() => process.exit(1));
  // Ctrl-C arrives twice: from the terminal and from the parent process.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, end);
  process.on("disconnect", end);
  // These listeners must not keep the process running.
  process.channel?.unref();
}
