import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { ensureBaseImages, standInImages } from "./lib/base-images.ts";
import { projectRoot } from "./lib/project-root.ts";
import { call, request, until } from "./lib/client.ts";
import { endSteps, run, step, succeeds } from "./lib/command.ts";
import { deploySample, type Sample } from "./lib/deploy-sample.ts";
import { ensureDockerEngine, installPackages } from "./lib/docker-engine.ts";
import { removeIngress, removeIsolation, removeSites, stopSites } from "./lib/engine-objects.ts";
import { leftoversFile, rememberEngine, runsAnother } from "./lib/engine-leftovers.ts";
import { startGitServer } from "./lib/git-server.ts";
import { startMailServer } from "./lib/mail-server.ts";
import { publishExamples } from "./lib/publish-examples.ts";
import {
  discardState,
  freePort,
  freePorts,
  isFree,
  lockState,
  openState,
  writePrivate,
} from "./lib/state.ts";
import { processesFile, Supervisor } from "./lib/supervisor.ts";

const usage = `Usage: npm start -- [options]

  --port <port>          the control plane's, 8787 unless given
  --ingress-port <port>  the sites', 8080 unless given
  --state-dir <folder>   keeps the state; .berth unless given
  --no-sample            deploys no sample site
  --keep                 leaves the engine and the sites running at the end`;

const flags = flagsOrUsage();

function flagsOrUsage() {
  try {
    const { values } = parseArgs({
      options: {
        port: { type: "string", default: "8787" },
        "ingress-port": { type: "string", default: "8080" },
        "state-dir": { type: "string", default: join(projectRoot, ".berth") },
        "no-sample": { type: "boolean", default: false },
        keep: { type: "boolean", default: false },
        // For tests: starts with an empty state directory and leaves nothing on the engine.
        discard: { type: "boolean", default: false },
        // For tests: another service of the same run uses the engine.
        beside: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    if (!values.help) return values;
    console.log(usage);
    process.exit(0);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`);
    process.exit(2);
  }
}

const stateDirectory = resolve(flags["state-dir"]);
const port = portOf("--port", flags.port);
const ingressPort = portOf("--ingress-port", flags["ingress-port"]);
const siteUrl = `http://127.0.0.1:${port}`;
const baseUrl = `${siteUrl}/api/v1`;
const inState = (...parts: string[]) => join(stateDirectory, ...parts);

function portOf(flag: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 65535)
    throw new Error(`${flag} is ${text}: give a port from 1 to 65535`);
  return value;
}

/** Clean-up actions at the end, newest first. */
const undo: (() => Promise<unknown>)[] = [];
let ending: Promise<void> | undefined;
const end = (code: number): Promise<void> =>
  (ending ??= (async () => {
    console.log("\nStopping …");
    endSteps();
    // Let an unfinished step remove its temporary files first.
    await Promise.race([main.catch(() => undefined), delay(10_000)]);
    for (const work of undo.toReversed())
      await work().catch((error: unknown) => console.error(String(error)));
    process.exit(code);
  })());
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => void end(0));
// Who read the output may be gone: what was started is ended all the same.
for (const output of [process.stdout, process.stderr]) output.on("error", () => undefined);
// The parent process is gone. npm may be killed without a signal to this one.
process.once("disconnect", () => void end(0));
if (process.env["npm_lifecycle_event"] === "start") {
  const npm = process.ppid;
  setInterval(() => process.ppid === npm || void end(0), 1000).unref();
}

const main = start();
main.catch((error: unknown) => {
  if (ending) return;
  console.error(`\nBerth could not start: ${error instanceof Error ? error.message : String(error)}`);
  void end(1);
});

async function start(): Promise<void> {
  mkdirSync(stateDirectory, { recursive: true, mode: 0o700 });
  undo.push(lockState(stateDirectory));
  const wasKilled = existsSync(processesFile(stateDirectory));
  await portIsFree("--port", port, wasKilled);

  const engine = await ensureDockerEngine(stateDirectory);
  if (!flags.keep) undo.push(() => engine.stop());
  if (flags.discard) await discardState(stateDirectory);
  if (existsSync(inState("state", "d1")))
    throw new Error(
      `${stateDirectory} was made by a version of Berth that kept its database elsewhere: start with a new --state-dir, or go back to that version.`,
    );
  const { state, save } = openState(stateDirectory, await freePorts());
  if (state.hostToken !== undefined) await removeIngress(state.hostToken);
  const whatIsLeft = flags.discard
    ? await rememberEngine(() => state.hostToken ?? "", flags.beside)
    : undefined;
  await portIsFree("--ingress-port", ingressPort, wasKilled);
  if (!(await succeeds("git", ["--version"]))) await installPackages(["git"]);
  await ensureBaseImages();

  const publicFiles = inState("build", "public");
  await step("Bundling the Worker, the agent and the pages", () =>
    run(process.execPath, [
      "--disable-warning=ExperimentalWarning",
      join(projectRoot, "scripts", "bundle-service.ts"),
      inState("build"),
    ]),
  );
  await publishExamples(inState("git"));

  const supervisor = new Supervisor(stateDirectory);
  if (whatIsLeft) undo.push(async () => writePrivate(inState(leftoversFile), await whatIsLeft()));
  // Runs after everything that would start containers has ended.
  if (!flags.keep) undo.push(() => clearEngine(state.hostToken));
  undo.push(() => supervisor.stop());
  // What a provider runs elsewhere.
  await startGitServer(inState("git"), state.ports.git);
  await startMailServer(inState("mail"), state.ports.mail);
  await step("Starting the control plane in workerd", async () => {
    const bindings = {
      SITE_URL: siteUrl,
      WEBHOOK_HOST: siteUrl,
      SITES_ORIGIN: `http://localhost:${ingressPort}`,
      INSECURE_GIT_HOSTS: `127.0.0.1:${state.ports.git}`,
      SAMPLE_REPOSITORY: `127.0.0.1:${state.ports.git}/examples/notes-app.git`,
      PAYMENTS: "test",
      ...limitsFromEnvironment(),
      SECRET_KEY: state.secretKey,
      ...(state.secretKeysOld !== undefined && { SECRET_KEYS_OLD: state.secretKeysOld }),
      ...(state.tokenKey !== undefined && { TOKEN_KEY: state.tokenKey }),
      SETUP_TOKEN: state.setupToken,
      MAIL_ENDPOINT: `http://127.0.0.1:${state.ports.mail}/emails`,
    };
    await supervisor.start(
      {
        name: "control-plane",
        file: inState("build", "control-plane.mjs"),
        args: [inState("build", "worker.js"), publicFiles, stateDirectory, String(port)],
        env: { BERTH_BINDINGS: JSON.stringify(bindings), BERTH_RUN: randomUUID() },
        answersAt: { url: `http://127.0.0.1:${port}/health`, withinMs: 60_000 },
        // workerd waits for every event stream that a page has open.
        endsWithinMs: 1000,
      },
      // workerd's own words; of its two sockets this is the Worker's.
      '"socket":"direct',
    );
    await until(
      async () => (await request(`${siteUrl}/health`)).status === 200,
      "The control plane's health",
      30_000,
    );
  });

  if (state.apiKey === undefined) {
    const { email, password } = state;
    const { body } = await call<{ apiKey: string }>("POST", `${siteUrl}/setup`, state.setupToken, {
      email,
      password,
      name: "Demo",
    });
    save({ apiKey: body.apiKey });
  }
  const apiKey = state.apiKey ?? "";
  // A unique name, so that a set-up interrupted between the two steps can resume.
  if (state.hostToken === undefined) {
    const { body } = await call<{ token: string }>("POST", `${baseUrl}/hosts`, apiKey, {
      name: `local-${Date.now().toString(36)}`,
    });
    save({ hostToken: body.token });
  }
  const hostToken = state.hostToken ?? "";

  await step("Starting the agent and the ingress", async () => {
    await supervisor.start({
      name: "ingress-responder",
      file: join(publicFiles, "install", "responder.mjs"),
      args: [
        inState("agent", "ingress", "routes.json"),
        String(state.ports.responder),
        String(state.ports.status),
      ],
    });
    const caFile = process.env["NODE_EXTRA_CA_CERTS"] ?? process.env["SSL_CERT_FILE"];
    const probationSeconds = process.env["BERTH_PROBATION_SECONDS"];
    await supervisor.start(
      {
        name: "agent",
        file: join(publicFiles, "install", "agent.mjs"),
        args: [],
        env: {
          BERTH_URL: siteUrl,
          BERTH_HOST_TOKEN: hostToken,
          BERTH_STATE_DIR: inState("agent"),
          BERTH_AUTO_UPDATE: "off",
          BERTH_IMAGE_PROVIDER: JSON.stringify([
            process.execPath,
            "--disable-warning=ExperimentalWarning",
            join(projectRoot, "scripts", "base-image.ts"),
          ]),
          BERTH_LOCAL_IMAGES: standInImages.join(","),
          BERTH_DOCKER_SOCKET: engine.socketPath,
          BERTH_INGRESS_ADDRESS: "127.0.0.1",
          BERTH_INGRESS_PORT: String(ingressPort),
          BERTH_RESPONDER_PORT: String(state.ports.responder),
          BERTH_STATUS_PORT: String(state.ports.status),
          BERTH_PEER_PORT: String(await freePort()),
          BERTH_INSECURE_GIT_HOSTS: `127.0.0.1:${state.ports.git}`,
          ...(caFile && existsSync(caFile) && { BERTH_BUILD_CA_FILE: caFile }),
          ...(probationSeconds !== undefined && { BERTH_PROBATION_SECONDS: probationSeconds }),
        },
      },
      '"message":"Connected"',
    );
  });

  const remember = (sampleSite?: Sample) =>
    writePrivate(inState("local.json"), {
      siteUrl,
      baseUrl,
      webhookHost: siteUrl,
      email: state.email,
      password: state.password,
      apiKey,
      ...(sampleSite && { sampleSite }),
    });
  remember(readSample());
  if (!flags["no-sample"]) {
    const options = { state, save, siteUrl, baseUrl, apiKey };
    const deployed = await step("Deploying the sample site", () => deploySample(options));
    if (ending) return;
    if (deployed) remember(deployed);
  }

  const sample = readSample();
  console.log("");
  if (sample) console.log(`  Sample site   ${sample.url}`);
  console.log(`  Dashboard     ${siteUrl}/`);
  console.log(`  Sign in       ${state.email}  ${state.password}`);
  console.log(`  Mail          goes to ${inState("mail")}`);
  console.log(`  API           ${baseUrl}  (key in ${inState("local.json")})`);
  console.log(`  Ctrl-C stops everything; ${stateDirectory} keeps the state.\n`);
  console.log(`ready ${siteUrl}`);
}

/** Lets tests of timeouts use shorter ones. */
function limitsFromEnvironment(): Record<string, string> {
  const names = ["START_TIMEOUT_SECONDS", "BUILD_TIMEOUT_SECONDS", "RELEASE_TIMEOUT_SECONDS"];
  return Object.fromEntries(
    names.flatMap((name) => [process.env[`BERTH_${name}`] ?? []].flat().map((value) => [name, value])),
  );
}

function readSample(): Sample | undefined {
  const file = inState("local.json");
  return existsSync(file)
    ? (JSON.parse(readFileSync(file, "utf8")) as { sampleSite?: Sample }).sampleSite
    : undefined;
}

/** Parts of a killed run end by themselves within moments. */
async function portIsFree(flag: string, used: number, wasKilled: boolean): Promise<void> {
  await until(() => isFree(used), flag, wasKilled ? 10_000 : 0).catch(() => {
    throw new Error(`Port ${used} is in use: stop the program that uses it, or choose another with ${flag}.`);
  });
}

async function clearEngine(hostToken: string | undefined): Promise<void> {
  if (hostToken === undefined) return;
  await removeIngress(hostToken);
  await (flags.discard ? removeSites : stopSites)(hostToken);
  await removeIsolation(hostToken, runsAnother());
}
