import type { Host } from "./host.ts";

/** The members that answer at once. */
type Immediate<T> = {
  [Name in keyof T]: T[Name] extends (...args: never[]) => Promise<unknown> ? never : Name;
}[keyof T];

/**
 * Members that only read, or follow a signal of their own, and the one that wakes what a run has frozen, which is to run whoever
 * it belongs to. All that answer at once are among them: nobody would await their refusal, and a rejection that nobody awaits ends
 * the agent.
 */
const harmless: Record<Immediate<Host["engine"]> | Immediate<Host["ingress"]> | "resumeContainer", true> = {
  current: true,
  fallback: true,
  followLog: true,
  hostnames: true,
  losses: true,
  lost: true,
  newest: true,
  resumeContainer: true,
  sites: true,
  streamLog: true,
  watchContainers: true,
};

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
      return Object.hasOwn(harmless, name) ? method : () => Promise.reject(over.reason as Error);
    },
  });
