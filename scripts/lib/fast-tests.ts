const workerParts = 5;

/**
 * Arguments of vitest for the tests without an engine. Those in workerd run in parts, a process each: with each file
 * vitest sends workerd, in one message, all cached modules that it knows the file to need (`fetchWarmModules`). It
 * learns of more with each file that has run, and workerd ends at a message of more than its limit.
 */
export const fastParts: readonly (readonly string[])[] = [
  ["--project", "unit"],
  ...Array.from({ length: workerParts }, (_, part) => [
    "--project",
    "worker",
    `--shard=${part + 1}/${workerParts}`,
  ]),
];
