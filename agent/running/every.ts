import { setTimeout as delay } from "node:timers/promises";

/** Runs `work` after each pause, until the signal aborts or `work` throws. Keeps no process alive. */
export function every(intervalMs: number, signal: AbortSignal, work: () => Promise<unknown>): void {
  const loop = async () => {
    for (;;) {
      await delay(intervalMs, undefined, { signal, ref: false });
      await work();
    }
  };
  loop().catch(() => undefined);
}
