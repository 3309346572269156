const silence = "The engine did not answer in time";

/**
 * Aborts a request without an answer in time. If this process or its machine was suspended meanwhile, it first reads
 * what arrived in that time.
 */
export function answerTimeout(timeoutMs: number): AbortSignal {
  const over = new AbortController();
  const began = performance.now();
  const end = () => over.abort(new DOMException(silence, "TimeoutError"));
  const timer = setTimeout(() => {
    const hasSlept = performance.now() - began > timeoutMs * 1.1;
    if (hasSlept) setTimeout(end, Math.min(timeoutMs, 5000)).unref();
    else end();
  }, timeoutMs);
  timer.unref();
  return over.signal;
}

/** Whether this error, or what caused it, is that the engine did not answer a request in time. */
export const isSilence = (error: unknown): boolean =>
  error instanceof Error && (error.message === silence || isSilence(error.cause));
