import type { JobArgs } from "../../protocol/agent/jobs.ts";
import { formatId } from "../../protocol/ids.ts";
import { runSpec } from "./run-spec.ts";

/** A first deployment of that site, as sent to a host. */
export const deployArgs = (changes: Partial<JobArgs<"site.deploy">> = {}): JobArgs<"site.deploy"> => ({
  run: runSpec(),
  deploymentId: formatId("deployment", 9, new Uint8Array(10)),
  source: { type: "dockerfile", text: "FROM scratch\n" },
  rootDir: null,
  dockerfilePath: null,
  buildCommand: null,
  options: {},
  buildTimeoutSeconds: 60,
  rebuild: false,
  kept: [],
  ...changes,
});
