import { compose } from "./compose.ts";
import { defaultDockerSocket, readConfig } from "./config.ts";
import { raiseFirewall } from "./isolation/isolation.ts";
import { liftKernelBounds } from "./isolation/kernel-bounds.ts";
import { checkMachine } from "./startup/engine-ready.ts";

const command = process.argv[2];
// The install script runs this before there is a configuration.
if (command === "check")
  process.exit(await checkMachine(process.env["BERTH_DOCKER_SOCKET"] || defaultDockerSocket));

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
