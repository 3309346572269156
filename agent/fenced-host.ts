import type { Host } from "./host.ts";

/** Members that only read, or follow a signal of their own. */
const harmless = new Set<PropertyKey>([
  "current",
  "sites",
  "lost",
  "fallback",
  "followLog",
  "watchContainers",
]);

/**
 * The host as seen by one run of a job: once the signal aborts, nothing that the run still does affects containers,
 * images or routes, which may belong to another run by then.
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
