import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "./lib/project-root.ts";
import { cliReference, introductionOf, manPage } from "./lib/cli-reference.ts";

/** Writes the reference of the command line program again after its commands changed. */
const reference = join(projectRoot, "docs", "manual", "cli.md");
writeFileSync(reference, cliReference(introductionOf(readFileSync(reference, "utf8"))));
writeFileSync(join(projectRoot, "cli", "berth.1"), manPage());
