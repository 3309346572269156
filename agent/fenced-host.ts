import type { Host } from "./host.ts";

/** What only reads, or follows a signal of its own. */
const harmless = new Set<PropertyKey>([
  "current",
  "sites",
  "lost",
  "fallback",
  "followLog",
  "watchContainers",
]);

/**
 * The host as one run of a job has it: from the signal on, nothing that the run still does has an effect on containers,
 * images or routes, which may be another run's by then.
 */
export function fencedHost(host: Host, over: AbortSignal): Host {
  return {
    ...host,
    get engine() {
      return fenced(host.engine, over);
    },
    get ingress() {
      return fenced(host.ingress, over);
    },
    retire: (siteId, keepContainerIds) => {
      if (!over.aborted) host.retire(siteId, keepContainerIds);
    },
  };
}

const fenced = <T extends object>(means: T, over: AbortSignal): T =>
  new Proxy(means, {
    get: (target, name) => {
      const method: unknown = Reflect.get(target, name);
      if (!over.aborted || typeof method !== "function") return method;
      return harmless.has(name) ? method : () => Promise.reject(over.reason as Error);
    },
  });
