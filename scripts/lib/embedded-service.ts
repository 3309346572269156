import { spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "./bundle.ts";
import { freePort, type State } from "./state.ts";

export type EmbeddedService = { env: Record<string, string>; stop(): Promise<void> };

/** `npm start` as a child with ports and a fresh state directory of its own; what it prints is shown. */
export async function startEmbeddedService(name: string): Promise<EmbeddedService> {
  const stateDirectory = join(projectRoot, ".berth", name);
  rmSync(stateDirectory, { recursive: true, force: true });
  const flags = [
    "--state-dir",
    stateDirectory,
    "--port",
    String(await freePort()),
    "--ingress-port",
    String(await freePort()),
  ];
  const child = spawn(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", join(projectRoot, "scripts", "start.ts"), ...flags],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  await new Promise<void>((resolve, reject) => {
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      process.stdout.write(chunk);
      text += chunk;
      if (/^ready /m.test(text)) resolve();
    });
    void exited.then((code) => reject(new Error(`npm start ended with ${code} before it was ready`)));
  });
  const { ports } = JSON.parse(readFileSync(join(stateDirectory, "secrets.json"), "utf8")) as State;
  return {
    env: { BERTH_E2E_STATE_DIR: stateDirectory, BERTH_E2E_GIT_HOST: `127.0.0.1:${ports.git}` },
    async stop() {
      child.kill("SIGTERM");
      await exited;
    },
  };
}
