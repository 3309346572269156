import { JobError } from "../job.ts";

/** What the engine says of a container that an image or its settings do not allow, and what their owner is told. */
const refusals: [said: RegExp, told: (...found: string[]) => string][] = [
  [
    /No command specified/,
    () => "The image says nothing that could be run: set startCommand, or add CMD to its Dockerfile.",
  ],
  [
    /unable to find (user|group) ([^:\s]{1,100}): no matching entries/,
    (kind = "", name = "") => `The image has no ${kind} ${name}: mend USER in its Dockerfile.`,
  ],
  [
    /not a directory/,
    () =>
      "Where the image is to work in a folder, or a volume is to be mounted, it has a file: mend WORKDIR in its Dockerfile, or the volume's mountPath.",
  ],
];

/** The same for what only the operator can mend: the engine's words, without folders of the host. */
export function engineSaid(error: unknown): string {
  const refusal = refusalOf(error);
  if (refusal instanceof JobError) return refusal.message;
  const words = (error instanceof Error ? error.message : String(error))
    .replace(/^\(HTTP code \d+\)[^-]*- /, "")
    .replace(/(?<![\w.])\/[^\s"':,]+/g, "…")
    .replace(/\s+/g, " ")
    .trim();
  return `the engine says "${words.slice(0, 500)}".`;
}

/** An engine's error as the site's owner is to read it. Its own words stay in the agent's log: they name folders of the host. */
export function refusalOf(error: unknown): unknown {
  const text = String(error);
  for (const [said, told] of refusals) {
    const found = said.exec(text);
    if (found) return new JobError(told(...found.slice(1)), { cause: error });
  }
  return error;
}
