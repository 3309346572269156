import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createHash } from "node:crypto";
import { parseArgs } from "node:util";
import { ensureBaseImages } from "./lib/base-images.ts";
import { bundleNode, bundleWorker, projectRoot } from "./lib/bundle.ts";
import { call, request, until } from "./lib/client.ts";
import { run, step, succeeds } from "./lib/command.ts";
import { ensureDockerEngine, installPackages } from "./lib/docker-engine.ts";
import { publishExamples } from "./lib/publish-examples.ts";
import { isFree, openState, writePrivate } from "./lib/state.ts";
import { Supervisor } from "./lib/supervisor.ts";

const { values: flags } = parseArgs({
  options: {
    port: { type: "string", default: "8787" },
    "ingress-port": { type: "string", default: "8080" },
    "state-dir": { type: "string", default: join(projectRoot, ".berth") },
    "no-sample": { type: "boolean", default: false },
    keep: { type: "boolean", default: false },
  },
});
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

/** What to undo when this ends, newest first. */
const undo: (() => Promise<unknown>)[] = [];
let ending: Promise<void> | undefined;
const end = (code: number): Promise<void> =>
  (ending ??= (async () => {
    console.log("\nStopping …");
    for (const work of undo.toReversed())
      await work().catch((error: unknown) => console.error(String(error)));
    process.exit(code);
  })());
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => void end(0));

try {
  await main();
} catch (error) {
  if (!ending) {
    console.error(`\nBerth could not start: ${error instanceof Error ? error.message : String(error)}`);
    await end(1);
  }
}

async function main(): Promise<void> {
  const { state, save } = await openState(stateDirectory);
  for (const [flag, used] of [
    ["--port", port],
    ["--ingress-port", ingressPort],
  ] as const)
    if (!(await isFree(used)))
      throw new Error(`Port ${used} is taken: end what uses it, or choose another with ${flag}.`);

  const engine = await ensureDockerEngine(stateDirectory);
  if (!flags.keep) undo.push(() => engine.stop());
  if (!(await succeeds("git", ["--version"]))) await installPackages(["git"]);
  await ensureBaseImages();

  const [workerBundle, agentBundle, responderBundle] = [
    inState("build", "worker.js"),
    inState("build", "agent.mjs"),
    inState("build", "responder.mjs"),
  ];
  await step("Bundling the Worker and the agent", () =>
    Promise.all([
      bundleWorker(workerBundle),
      bundleNode("agent/index.ts", agentBundle),
      bundleNode("agent/ingress/responder.ts", responderBundle),
    ]),
  );
  await publishExamples(inState("git"));

  const supervisor = new Supervisor(stateDirectory);
  undo.push(() => supervisor.stop());
  await supervisor.start({
    name: "git-server",
    file: join(projectRoot, "scripts", "git-server.ts"),
    args: [inState("git"), String(state.ports.git)],
  });
  await step("Starting the control plane in workerd", async () => {
    const bindings = {
      SITE_URL: siteUrl,
      WEBHOOK_HOST: siteUrl,
      SITES_ORIGIN: `http://localhost:${ingressPort}`,
      PAYMENTS: "test",
      SECRET_KEY: state.secretKey,
      SETUP_TOKEN: state.setupToken,
    };
    await supervisor.start(
      {
        name: "control-plane",
        file: join(projectRoot, "scripts", "control-plane.ts"),
        args: [workerBundle, stateDirectory, String(port)],
        env: { BERTH_BINDINGS: JSON.stringify(bindings) },
      },
      "listening",
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
  // A name of its own, so that a set-up interrupted between the two steps can go on.
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
      file: responderBundle,
      args: [
        inState("agent", "ingress", "routes.json"),
        String(state.ports.responder),
        String(state.ports.status),
      ],
    });
    undo.push(() => stopContainers(hostToken));
    const caFile = process.env["NODE_EXTRA_CA_CERTS"] ?? process.env["SSL_CERT_FILE"];
    await supervisor.start(
      {
        name: "agent",
        file: agentBundle,
        args: [],
        // An agent works little and waits long: a small young generation and few arenas keep it small.
        nodeFlags: ["--max-semi-space-size=1", "--optimize-for-size", "--v8-pool-size=1"],
        env: {
          MALLOC_ARENA_MAX: "2",
          BERTH_URL: siteUrl,
          BERTH_HOST_TOKEN: hostToken,
          BERTH_STATE_DIR: inState("agent"),
          BERTH_DOCKER_SOCKET: engine.socketPath,
          BERTH_INGRESS_ADDRESS: "127.0.0.1",
          BERTH_INGRESS_PORT: String(ingressPort),
          BERTH_RESPONDER_PORT: String(state.ports.responder),
          BERTH_STATUS_PORT: String(state.ports.status),
          BERTH_INSECURE_GIT_HOSTS: `127.0.0.1:${state.ports.git}`,
          ...(caFile && existsSync(caFile) && { BERTH_BUILD_CA_FILE: caFile }),
        },
      },
      '"message":"Connected"',
    );
  });

  const remember = (sampleSite?: { id: string; url: string }) =>
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
  if (!flags["no-sample"])
    remember(await step("Deploying the sample site", () => deploySample(state, save, apiKey)));

  const sample = readSample();
  console.log("");
  if (sample) console.log(`  Sample site   ${sample.url}`);
  console.log(`  Dashboard     ${siteUrl}/`);
  console.log(`  Sign in       ${state.email}  ${state.password}`);
  console.log(`  API           ${baseUrl}  (key in ${inState("local.json")})`);
  console.log(`  Ctrl-C stops all of it; ${stateDirectory} remembers.\n`);
  console.log(`ready ${siteUrl}`);
}

function readSample(): { id: string; url: string } | undefined {
  const file = inState("local.json");
  return existsSync(file)
    ? (JSON.parse(readFileSync(file, "utf8")) as { sampleSite?: { id: string; url: string } }).sampleSite
    : undefined;
}

type Opened = Awaited<ReturnType<typeof openState>>;

/** The main job through the public API: create → pay → build → RUNNING. Each step is kept, so that it can go on. */
async function deploySample(
  state: Opened["state"],
  save: Opened["save"],
  apiKey: string,
): Promise<{ id: string; url: string }> {
  type Site = {
    id: string;
    url: string;
    status: string;
    latestDeployment: { id: string; error: string | null } | null;
  };
  if (state.sampleSiteId !== undefined) {
    const known = await call<Site>(
      "GET",
      `${baseUrl}/sites/${state.sampleSiteId}`,
      apiKey,
      undefined,
      [200, 404],
    );
    if (known.status === 200 && known.body.status !== "PENDING") {
      if (known.body.status !== "DEPLOYING") return { id: known.body.id, url: known.body.url };
    } else if (known.status === 404) save({ sampleSiteId: "" });
  }
  if (!state.sampleSiteId) {
    const { body } = await call<{ siteId: string; invoiceToken: string }>(
      "POST",
      `${baseUrl}/sites`,
      apiKey,
      {
        name: `sample-${Date.now().toString(36)}`,
        deployType: "github",
        githubUrl: `127.0.0.1:${state.ports.git}/examples/notes-app.git`,
        port: 3000,
        billingTerm: 1,
      },
    );
    save({ sampleSiteId: body.siteId, sampleInvoiceToken: body.invoiceToken });
  }
  const id = state.sampleSiteId ?? "";
  await call("POST", `${siteUrl}/invoice/${state.sampleInvoiceToken ?? ""}/pay`, apiKey);
  let cursor = 0;
  for (;;) {
    const { body: site } = await call<Site>("GET", `${baseUrl}/sites/${id}`, apiKey);
    if (site.latestDeployment) {
      const url = `${baseUrl}/deployments/${site.latestDeployment.id}/logs?cursor=${cursor}`;
      const { body: log } = await call<{ data: { seq: number; text: string }[] }>("GET", url, apiKey);
      for (const line of log.data) process.stdout.write(`  │ ${line.text}\n`);
      cursor = log.data.at(-1)?.seq ?? cursor;
    }
    if (site.status === "RUNNING") {
      await until(
        async () => (await request(site.url)).status === 200,
        `The sample site's answer at ${site.url}`,
        30_000,
      );
      return { id, url: site.url };
    }
    if (site.status !== "DEPLOYING" && site.status !== "PENDING")
      throw new Error(
        `The sample site is ${site.status}: ${site.latestDeployment?.error ?? "no reason known"}`,
      );
    // Two requests a round, and sixty a minute: slower than a person would poll, so that the key keeps some room.
    await new Promise((resume) => setTimeout(resume, 3000));
  }
}

/** Sites stop and start again next time; Caddy is made anew then. */
async function stopContainers(hostToken: string): Promise<void> {
  if (flags.keep) return;
  const agentId = createHash("sha256").update(hostToken).digest("hex").slice(0, 16);
  const idsOf = async (label: string) =>
    (await run("docker", ["ps", "--quiet", "--filter", `label=${label}=${agentId}`]))
      .split("\n")
      .filter(Boolean);
  const [sites, ingress] = [await idsOf("berth.agent"), await idsOf("berth.ingress")];
  if (sites.length > 0) await run("docker", ["stop", "--time", "5", ...sites]);
  if (ingress.length > 0) await run("docker", ["rm", "--force", ...ingress]);
}
