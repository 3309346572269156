import { join } from "node:path";
import { bundleHostPrograms, bundleLocal, bundleWorker } from "./lib/bundle.ts";
import { bundleWeb } from "./lib/bundle-web.ts";

/**
 * Bundles what `npm start` runs: the Worker, the agent, the pages, and what becomes the control plane. In a process of its
 * own, whose memory is free afterwards. Usage: bundle-service.ts <folder>
 */
const [folder = ""] = process.argv.slice(2);
const publicFiles = join(folder, "public");
await Promise.all([
  bundleHostPrograms(publicFiles),
  bundleWorker(join(folder, "worker.js")),
  bundleWeb(publicFiles),
  bundleLocal("control-plane", join(folder, "control-plane.mjs")),
]);
