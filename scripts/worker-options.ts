import { join } from "node:path";
import { unstable_getMiniflareWorkerOptions as workerOptionsOf } from "wrangler";
import { projectRoot } from "./lib/project-root.ts";

/** Prints wrangler.toml as Miniflare's options, in JSON. */
console.log(JSON.stringify(workerOptionsOf(join(projectRoot, "wrangler.toml")).workerOptions));
