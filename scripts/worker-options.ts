import { join } from "node:path";
import { unstable_getMiniflareWorkerOptions as workerOptionsOf } from "wrangler";
import { projectRoot } from "./lib/bundle.ts";

/** Prints wrangler.toml as Miniflare's options, in JSON. */
console.log(JSON.stringify(workerOptionsOf(join(projectRoot, "wrangler.toml")).workerOptions));
