import { createHmac } from "node:crypto";
import type { JobArgs } from "../../protocol/agent/jobs.ts";
import { agentVersion } from "../version.ts";

type Input = Pick<
  JobArgs<"site.deploy">,
  "run" | "source" | "rootDir" | "dockerfilePath" | "buildCommand" | "options" | "releaseCommand" | "release"
>;

/** A control plane of before tells it only where it is run. */
export const releaseCommandOf = ({
  releaseCommand,
  release,
}: Pick<Input, "releaseCommand" | "release">): string | null =>
  releaseCommand === undefined ? (release?.command ?? null) : releaseCommand;

/**
 * The same for two builds of which nothing that goes in differs: source, commit, settings, variables with their secret
 * values, and the agent that writes Dockerfiles. Keyed, as it leaves the host and secrets could be guessed from a bare hash.
 */
export function buildKeyOf(input: Input, commit: string | null, key: string, isGenerated = true): string {
  const { run, source, rootDir, dockerfilePath, buildCommand, options } = input;
  const variables = run.env
    .filter(({ scope }) => scope !== "runtime")
    .map(({ key: name, value, secret }) => [name, value, secret] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  const from = source.type === "git" ? source.address : source.type === "dockerfile" ? source.text : null;
  const parts = [
    agentVersion,
    source.type,
    from,
    commit,
    rootDir,
    dockerfilePath,
    buildCommand,
    run.startCommand,
    // What it runs stays in the image, which the owner's own Dockerfile knows nothing of.
    isGenerated && releaseCommandOf(input),
    variables,
    Object.entries(options).toSorted(([a], [b]) => (a < b ? -1 : 1)),
    source.type === "git" && [source.submodules ?? false, source.lfs ?? false],
  ];
  return createHmac("sha256", key).update(JSON.stringify(parts)).digest("hex");
}
