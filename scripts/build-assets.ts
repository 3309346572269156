import { join } from "node:path";
import { bundleHostPrograms, projectRoot } from "./lib/bundle.ts";

/** Builds the assets that `wrangler deploy` uploads beside the Worker. */
await bundleHostPrograms(join(projectRoot, "dist"));
