import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { compose } from "./compose.ts";
import { readConfig } from "./config.ts";
import { raiseFirewall } from "./isolation/isolation.ts";
import { liftKernelBounds } from "./isolation/kernel-bounds.ts";
import { checkMachine } from "./startup/engine-ready.ts";

const command = process.argv[2];
// The install script runs this before the services, which have their settings from this file; `update.ts`, to see whether all is loaded.
if (command === "check") {
  const settings = parseEnv(readFileSync(process.argv[3] ?? "", "utf8"));
  process.exit(await checkMachine(readConfig({ ...process.env, ...settings })));
}

const config = readConfig(process.env);
await liftKernelBounds();
// berth-firewall.service runs this before the engine, which starts the sites by itself.
if (command === "firewall") {
  await raiseFirewall({ agentId: config.agentId, ...config.firewall });
  process.exit();
}

const agent = compose(config, { programFile: import.meta.filename, exit: () => void exit() });
await agent.start();
process.once("SIGTERM", () => void exit());
process.once("SIGINT", () => void exit());
if (process.env["BERTH_EXIT_WITH_PARENT"] === "1") process.stdin.on("end", () => void exit()).resume();

async function exit(): Promise<void> {
  await agent.stop();
  process.exit(0);
}
