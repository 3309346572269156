import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { freePort, type State } from "../../scripts/lib/state.ts";
import { readState } from "../support/embedded-service.ts";
import { apiOf, gitHost, stateDirectory } from "./service.ts";

/**
 * Another control plane, of the programs that the service runs, with a database of its own and no hosts, for what `npm start`
 * does not set up: Stripe, a model, a DNS provider. Its mails are among the service's. @param env of its process
 */
export async function startControlPlane(bindings: Record<string, string>, env: Record<string, string> = {}) {
  const port = await freePort();
  const siteUrl = `http://127.0.0.1:${port}`;
  const { mail } = readState<State>("secrets.json").ports;
  const setupToken = "a-set-up-token-of-thirty-two-characters";
  const folder = mkdtempSync(join(stateDirectory, "work-"));
  const allBindings = {
    SITE_URL: siteUrl,
    SITES_ORIGIN: "http://localhost:1",
    INSECURE_GIT_HOSTS: gitHost,
    SECRET_KEY: "A".repeat(43),
    SETUP_TOKEN: setupToken,
    MAIL_ENDPOINT: `http://127.0.0.1:${mail}/emails`,
    ...bindings,
  };
  const start = () => run(folder, port, { ...env, BERTH_BINDINGS: JSON.stringify(allBindings) });
  let stop = await start();
  const operator = { email: "operator@example.com", password: "a long password" };
  const { status } = await fetch(`${siteUrl}/setup`, {
    method: "POST",
    headers: { Authorization: `Bearer ${setupToken}`, "Content-Type": "application/json" },
    body: JSON.stringify({ ...operator, name: "Operator" }),
  });
  if (status !== 201) throw new Error(`/setup answered ${status}`);
  return {
    siteUrl,
    operator,
    api: apiOf({ siteUrl, baseUrl: `${siteUrl}/api/v1`, ...operator }),
    stop: () => stop(),
    /** @param work on its record, in this folder */
    async whileStopped(work: (state: string) => void) {
      await stop();
      work(join(folder, "state"));
      stop = await start();
    },
  };
}

/** Resolves when it answers, to what ends it. */
async function run(folder: string, port: number, env: Record<string, string>): Promise<() => Promise<void>> {
  const build = join(stateDirectory, "build");
  const child = spawn(
    process.execPath,
    [
      "--disable-warning=ExperimentalWarning",
      join(build, "control-plane.mjs"),
      join(build, "worker.js"),
      join(build, "public"),
      folder,
      String(port),
    ],
    { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, ...env } },
  );
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  await new Promise<void>((resolve, reject) => {
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      if (text.includes('"socket":"direct')) resolve();
    });
    void ended.then(() => reject(new Error(`The control plane ended: ${text}`)));
  });
  return async () => {
    // It would wait for every event stream that a page has open.
    child.kill("SIGKILL");
    await ended;
  };
}
export type ControlPlane = Awaited<ReturnType<typeof startControlPlane>>;
