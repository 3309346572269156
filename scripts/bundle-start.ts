import { renameSync } from "node:fs";
import { join } from "node:path";
import { bundleLocal } from "./lib/bundle.ts";
import { projectRoot } from "./lib/project-root.ts";

/** Bundles start.ts for start.sh. Another run may read it meanwhile. */
const folder = join(projectRoot, "node_modules", ".cache", "berth");
const made = join(folder, `start-${process.pid}.mjs`);
await bundleLocal("start", made);
renameSync(made, join(folder, "start.mjs"));
