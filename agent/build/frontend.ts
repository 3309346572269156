import { JobError } from "../host.ts";

/** Docker's own. Any other could hand the engine results for the steps of other tenants' builds, which take them from its cache. */
const known =
  /^(?:docker\.io\/)?docker\/dockerfile(?:-upstream)?(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?(?: |$)/;

/**
 * More than BuildKit takes for a syntax directive: it reads those with `#` before any other line, else with `//`, after a line
 * that begins with `#!`, and takes for spaces what Unicode does.
 */
const directive = /^(?:#|\/\/)[\s\x85]*syntax\s*=(.*)$/i;

/** @throws JobError where a build would run an image of anybody's to read its Dockerfile */
export function demandKnownFrontend(dockerfile: string, buildArgs: Record<string, string>): void {
  const asked = buildArgs["BUILDKIT_SYNTAX"];
  if (asked !== undefined) demandKnown(asked);
  for (const line of dockerfile.split("\n")) {
    const text = line.trim();
    if (text.startsWith("{")) throw new JobError("The Dockerfile begins with {: begin it with FROM.");
    if (text !== "" && !/^(?:#|\/\/)/.test(text)) return;
    const value = directive.exec(text)?.[1];
    if (value !== undefined) demandKnown(value);
  }
}

function demandKnown(value: string): void {
  const name = value.trim();
  if (!known.test(name))
    throw new JobError(
      `The Dockerfile asks for the syntax ${name.slice(0, 200)}: leave the line out, or ask for docker/dockerfile:1.`,
    );
}
