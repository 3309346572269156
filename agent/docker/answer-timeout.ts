/**
 * Aborts a request without an answer in time. If this process or its machine was suspended meanwhile, it first reads
 * what arrived in that time.
 */
export function answerTimeout(timeoutMs: number): AbortSignal {
  const over = new AbortController();
  const began = performance.now();
  const end = () => over.abort(new DOMException("The engine did not answer in time", "TimeoutError"));
  const timer = setTimeout(() => {
    const hasSlept = performance.now() - began > timeoutMs * 1.1;
    if (hasSlept) setTimeout(end, Math.min(timeoutMs, 5000)).unref();
    else end();
  }, timeoutMs);
  timer.unref();
  return over.signal;
}
