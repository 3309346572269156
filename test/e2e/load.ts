import http from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { request } from "./service.ts";

/** Asks at a steady rate over kept-alive connections until told to stop; answers what came back. */
export function steadyLoad(url: string, requestsPerSecond: number) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 20 });
  const failures: string[] = [];
  const texts = new Map<string, number>();
  const pending = new Set<Promise<void>>();
  const stopping = new AbortController();
  let lastMs = performance.now();
  const seen = { asked: 0, longestGapMs: 0 };
  const one = async () => {
    seen.asked++;
    try {
      const { status, text } = await request(url, { agent });
      if (status !== 200) return void failures.push(`${status} ${text.slice(0, 100)}`);
      texts.set(text, (texts.get(text) ?? 0) + 1);
      seen.longestGapMs = Math.max(seen.longestGapMs, performance.now() - lastMs);
      lastMs = performance.now();
    } catch (error) {
      failures.push(String(error));
    }
  };
  const loop = (async () => {
    const started = performance.now();
    for (let sent = 0; !stopping.signal.aborted; sent++) {
      const due = started + (sent * 1000) / requestsPerSecond;
      if (due > performance.now()) await delay(due - performance.now());
      const work: Promise<void> = one().finally(() => pending.delete(work));
      pending.add(work);
    }
  })();
  return {
    /** How many were asked, and the longest time without a 200. */
    seen,
    texts,
    async stop() {
      stopping.abort();
      await loop;
      await Promise.all(pending);
      agent.destroy();
      return { failures, texts };
    },
  };
}
