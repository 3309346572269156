import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { bundleCli, projectRoot } from "./lib/bundle.ts";

/** Builds what `npm publish` of cli/ uploads. */
const folder = join(projectRoot, "cli", "dist");
mkdirSync(folder, { recursive: true });
await bundleCli(join(folder, "berth.mjs"));
