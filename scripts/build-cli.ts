import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { bundleCli } from "./lib/bundle.ts";
import { projectRoot } from "./lib/project-root.ts";

/** Builds what `npm publish` of cli/ uploads. */
const folder = join(projectRoot, "cli", "dist");
mkdirSync(folder, { recursive: true });
await bundleCli(join(folder, "berth.mjs"));
