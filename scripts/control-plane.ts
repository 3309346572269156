import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { projectRoot } from "./lib/project-root.ts";
import { wrongSetUp } from "./lib/supervisor.ts";

/**
 * Becomes workerd, which runs the Worker on this machine; a Node beside it would keep 100 MB for doing nothing. Usage:
 * control-plane.ts <bundle> <public files> <state directory> <port>; variables come as JSON in BERTH_BINDINGS and, read at
 * each start, in variables.json of the state directory. A restart in the same BERTH_RUN configures nothing anew.
 */
const [bundle = "", publicFiles = "", stateDirectory = "", port = ""] = process.argv.slice(2);
const ownVariables = join(stateDirectory, "variables.json");
const own = existsSync(ownVariables) ? readFileSync(ownVariables, "utf8") : "{}";
const bindings = {
  ...(JSON.parse(process.env["BERTH_BINDINGS"] ?? "{}") as Record<string, string>),
  ...(JSON.parse(own) as Record<string, string>),
  // Tests do not wait a minute for each step.
  TICK_MS: process.env["BERTH_TICK_MS"] ?? "60000",
};

// Miniflare's own, which a bundle of this file does not lie beside.
const { resolve } = createRequire(join(projectRoot, "package.json"));
const { default: workerd } = createRequire(resolve("miniflare"))("workerd") as { default: string };
const folder = join(stateDirectory, "workerd");
mkdirSync(folder, { recursive: true, mode: 0o700 });
const configuration = join(folder, "configuration.bin");
const configuredFor = join(folder, "configured-for");
const run = process.env["BERTH_RUN"];
const wanted = createHash("sha256")
  .update(JSON.stringify([run, own]))
  .digest("hex");

if (run === undefined || !existsSync(configuredFor) || readFileSync(configuredFor, "utf8") !== wanted) {
  const { configureWorkerd } = await import("./lib/configure-workerd.ts");
  const state = join(stateDirectory, "state");
  const temporary = join(folder, "tmp");
  await configureWorkerd({ bundle, publicFiles, state, bindings, workerd, configuration, temporary }).catch(
    (error: Error) => {
      console.error(error.message);
      process.exit(wrongSetUp);
    },
  );
  writeFileSync(configuredFor, wanted);
}

// It ends with whoever started this process. Miniflare's router stays, at a port that nobody knows.
const args = ["--pdeathsig", "KILL", workerd, "serve", "--binary", "--experimental"];
args.push(`--socket-addr=direct:0:default=127.0.0.1:${port}`, "--socket-addr=entry=127.0.0.1:0");
args.push("--external-addr=loopback=127.0.0.1:1", "--control-fd=1", configuration);
// As on Cloudflare: workerd would take this machine's time zone.
process.env["TZ"] = "UTC";
process.execve?.("/usr/bin/setpriv", ["setpriv", ...args]);
