const workerParts = 5;

/**
 * Arguments of vitest for the tests without an engine. Those in workerd run in parts, a process each: what vitest tells its
 * workers at their start grows with the files before, and workerd ends at a message of more than its limit.
 */
export const fastParts: readonly (readonly string[])[] = [
  ["--project", "unit"],
  ...Array.from({ length: workerParts }, (_, part) => [
    "--project",
    "worker",
    `--shard=${part + 1}/${workerParts}`,
  ]),
];
