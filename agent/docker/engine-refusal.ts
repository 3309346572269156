import { JobError } from "../job.ts";

/** The engine's errors about an image or its settings, and the message for their owner. */
const refusals: [pattern: RegExp, message: (...found: string[]) => string][] = [
  [
    /No command specified/,
    () => "The image defines no command: set startCommand, or add CMD to its Dockerfile.",
  ],
  [
    /unable to find (user|group) ([^:\s]{1,100}): no matching entries/,
    (kind = "", name = "") => `The image has no ${kind} ${name}: correct USER in its Dockerfile.`,
  ],
  [
    /not a directory/,
    () =>
      "The image has a file at the path of its working directory or of a volume: correct WORKDIR in its Dockerfile, or the volume's mountPath.",
  ],
];

/** The message for errors that only the operator can fix: the engine's words without the host's paths. */
export function engineSaid(error: unknown): string {
  const refusal = refusalOf(error);
  if (refusal instanceof JobError) return refusal.message;
  const words = (error instanceof Error ? error.message : String(error))
    .replace(/^\(HTTP code \d+\)[^-]*- /, "")
    .replace(/(?<![\w.])\/[^\s"':,]+/g, "…")
    .replace(/\s+/g, " ")
    .trim();
  return `the engine reports "${words.slice(0, 500)}".`;
}

/**
 * Turns an engine's error into one for the site's owner, if it is known. The original stays in the agent's log,
 * because it contains the host's paths.
 */
export function refusalOf(error: unknown): unknown {
  const text = String(error);
  for (const [pattern, message] of refusals) {
    const found = pattern.exec(text);
    if (found) return new JobError(message(...found.slice(1)), { cause: error });
  }
  return error;
}
