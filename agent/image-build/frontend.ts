import { JobError } from "../job.ts";

/**
 * Docker's own. Any other could hand the engine results for the steps of other tenants' builds, which take them from its cache; and
 * so could releases before 1.2, of which it is not known that they keep tenants' caches and steps apart.
 */
const release = String.raw`1(?:\.(?:[2-9]|[1-9]\d)(?:\.\d{1,3})?)?(?:-rc\d{1,2})?(?:-labs)?`;
const known = new RegExp(
  String.raw`^(?:docker\.io\/)?docker\/dockerfile(?:-upstream)?(?::(?:latest|labs|master(?:-labs)?|${release})(?:@sha256:[0-9a-f]{64})?)?(?: |$)`,
);

/** More than BuildKit takes for a directive: it reads those with `#`, else those with `//`, and takes for spaces what Unicode does. */
const directive = /^(?:#|\/\/)[\s\x85]*([a-z][a-z0-9]*)\s*=([^]*)$/i;

/** @throws JobError where a build would run an image of anybody's to read its Dockerfile */
export function demandKnownFrontend(dockerfile: string, buildArgs: Record<string, string>): void {
  const asked = buildArgs["BUILDKIT_SYNTAX"];
  if (asked !== undefined) demandKnown(asked);
  const text = dockerfile.trimStart().replace(/^#![^\n]*\n?/, "");
  if (text.trimStart().startsWith("{"))
    throw new JobError("The Dockerfile begins with {: begin it with FROM.");
  // They end at the first line that is none.
  for (const line of text.split("\n")) {
    const [, name, value] = directive.exec(line) ?? [];
    if (name === undefined || value === undefined) return;
    if (name.toLowerCase() === "syntax") demandKnown(value);
  }
}

function demandKnown(value: string): void {
  const name = value.trim();
  if (!known.test(name))
    throw new JobError(
      `The Dockerfile asks for the syntax ${name.slice(0, 200)}: leave the line out, or ask for docker/dockerfile:1.`,
    );
}
