import { logError } from "../log-error.ts";

/** How much of a window a crash may lose. */
const writeEveryMs = 1000;

/** @returns asks for `write`, which then runs once within a second; no answer waits for it */
export function writingSoon(
  state: DurableObjectState,
  object: string,
  write: () => Promise<void> | undefined,
): () => void {
  let isAsked = false;
  return () => {
    if (isAsked) return;
    isAsked = true;
    state.waitUntil(
      scheduler
        .wait(writeEveryMs)
        .then(() => {
          isAsked = false;
          return write();
        })
        .catch((error: unknown) => logError({ object, step: "write" }, error)),
    );
  };
}
