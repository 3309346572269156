import { makeStandIn } from "./lib/base-images.ts";
import { endSteps } from "./lib/command.ts";

/** The BERTH_IMAGE_PROVIDER that `npm start` gives the agent. Usage: base-image.ts <image> */
const [image = ""] = process.argv.slice(2);
function stop(): void {
  endSteps();
  process.exitCode = 1;
}
process.once("SIGTERM", stop);
// The agent is gone.
process.stdin.on("end", stop).resume();
await makeStandIn(image).catch((error: Error) => {
  // For the deployment's log.
  console.error(error.message);
  process.exitCode = 1;
});
process.stdin.destroy();
