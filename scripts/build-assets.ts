import { join } from "node:path";
import { bundleHostPrograms } from "./lib/bundle.ts";
import { projectRoot } from "./lib/project-root.ts";
import { bundleWeb } from "./lib/bundle-web.ts";

/** Builds the assets that `wrangler deploy` uploads beside the Worker. */
await bundleHostPrograms(join(projectRoot, "dist"));
await bundleWeb(join(projectRoot, "dist"));
