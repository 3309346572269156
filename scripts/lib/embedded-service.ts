import { spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "./bundle.ts";
import { request, until } from "./client.ts";
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
      await removeSample(stateDirectory).catch((error: unknown) => console.error(String(error)));
      child.kill("SIGTERM");
      await exited;
    },
  };
}

/** The state directory is thrown away: what it would bring back next time goes as well. */
async function removeSample(stateDirectory: string): Promise<void> {
  const { baseUrl, apiKey, sampleSite } = JSON.parse(
    readFileSync(join(stateDirectory, "local.json"), "utf8"),
  ) as {
    baseUrl: string;
    apiKey: string;
    sampleSite: { id: string };
  };
  const url = `${baseUrl}/sites/${sampleSite.id}`;
  const status = async (method: string) =>
    (await request(url, { method, headers: { Authorization: `Bearer ${apiKey}` } })).status;
  await until(async () => [202, 404].includes(await status("DELETE")), "The sample site's deletion", 90_000);
  await until(async () => (await status("GET")) === 404, "The end of the sample site", 90_000);
}
