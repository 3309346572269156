import { createHash } from "node:crypto";
import * as z from "zod";
import { StopNotice } from "../../protocol/agent/stop-notice.ts";
import { HostIngressRules } from "../../protocol/api/ingress.ts";
import { wildcardOf } from "../../protocol/wildcards.ts";
import type { Forward as PlainForward, Target as PlainTarget } from "./ingress.ts";

const Target = z.object({
  containerId: z.string(),
  address: z.ipv4(),
  port: z.number().int().min(1).max(65535),
  /** It does not run now. */
  down: z.boolean().optional(),
  deploymentId: z.string().optional(),
  holder: z.string().optional(),
});

/** Where a site's names lead; `target` null: the site is stopped. */
const Answered = z.object({
  target: Target.nullable(),
  /** Further replicas. Apart, so that a responder that is older than its agent still answers. */
  others: z.array(Target).default([]),
  /** What the page of a stopped site says beside that. */
  notice: StopNotice.optional(),
});

const Forward = z.object({
  hostnames: z.array(z.string()),
  hostId: z.string(),
  address: z.string(),
  port: z.number().int().min(1).max(65535),
});

/** What the responder answers from: one file, replaced as a whole. */
export const RouteTable = z.object({
  version: z.number().int().nonnegative(),
  /** By site id. */
  sites: z.record(
    z.string(),
    Answered.extend({
      hostnames: z.array(z.string()),
      /** During a probation: what was answered before it, null for nothing. Only the agent reads it. */
      before: Answered.nullable().optional(),
    }),
  ),
  /** What the ingress does for a site, by its id; apart, as it outlives what answers. */
  rules: z.record(z.string(), HostIngressRules).optional(),
  /**
   * What a change of names and rules said beside other jobs of its site, and when the control plane read it: a job that was sent
   * before it does not bring back what was true then. Only the agent reads it.
   */
  told: z.record(z.string(), z.object({ readAtMs: z.number(), hostnames: z.array(z.string()) })).optional(),
  /** By site id. What is in `sites` answers instead while the other host does not. */
  forwards: z.record(z.string(), Forward).optional(),
  /** Sites of which the agent lost where they lead: what was answered before is true until it is told anew. */
  lost: z.array(z.string()).optional(),
});
export type RouteTable = z.infer<typeof RouteTable>;

export const emptyTable: RouteTable = { version: 0, sites: {} };

/** Where requests for one name go: containers, the page of a stopped site, or the page that knows no such site. */
export type Answer = readonly Pick<PlainTarget, "address" | "port" | "holder">[] | "parked" | "unknown";

/** What a request to a site with rules is decided by. */
type Ruled = {
  rules: HostIngressRules;
  hostnames: readonly string[];
  targets: readonly PlainTarget[];
  /** Names the site where Caddy counts its requests. */
  label: string;
  /** What follows it for a WebSocket: the deployment, for the access log, which learns of a WebSocket's upstream by its name only. */
  socketLabel: string;
};

/** Empty where the replicas are not of one version. */
function socketLabelOf(targets: readonly PlainTarget[]): string {
  const [deployment, ...others] = new Set(targets.map(({ deploymentId }) => deploymentId));
  const text = /^dep_([0-9a-z]+)$/.exec(deployment ?? "")?.[1];
  return text === undefined || others.length > 0 ? "" : `-${text}`;
}

const labelOf = (siteId: string): string => createHash("sha256").update(siteId).digest("hex").slice(0, 16);

/** Host name → where its requests are passed on to. `label` names the site, as that of `Ruled` does. */
export function forwardsByHostname(table: RouteTable): Map<string, PlainForward & { label: string }> {
  const forwards = new Map<string, PlainForward & { label: string }>();
  for (const [siteId, forward] of Object.entries(table.forwards ?? {}))
    for (const hostname of forward.hostnames)
      forwards.set(hostname.toLowerCase(), { ...forward, label: labelOf(siteId) });
  return forwards;
}

/** Host name → its site's rules, where it has any and is not stopped. */
export function rulesByHostname(table: RouteTable): Map<string, Ruled> {
  const ruled = new Map<string, Ruled>();
  for (const [siteId, rules] of Object.entries(table.rules ?? {})) {
    const site = table.sites[siteId];
    if (!site?.target || Object.keys(rules).length === 0) continue;
    const targets = [site.target, ...site.others];
    const one = {
      rules,
      hostnames: site.hostnames,
      targets,
      label: labelOf(siteId),
      socketLabel: socketLabelOf(targets),
    };
    for (const hostname of site.hostnames) ruled.set(hostname.toLowerCase(), one);
  }
  return ruled;
}

/** Host name → what the page of its stopped site says. */
export function noticesByHostname(table: RouteTable): Map<string, StopNotice> {
  const notices = new Map<string, StopNotice>();
  for (const { hostnames, target, notice } of Object.values(table.sites))
    if (!target && notice) for (const hostname of hostnames) notices.set(hostname.toLowerCase(), notice);
  return notices;
}

/** What is kept under a name, or else under the wildcard that covers it, in a map of all names. They are in lower case. */
export const under = <T>(names: ReadonlyMap<string, T>, hostname: string): T | undefined =>
  names.get(hostname) ?? names.get(wildcardOf(hostname));

/** Host name → answer, for look-ups. Names are compared in lower case. */
export function byHostname(table: RouteTable): Map<string, Answer> {
  const names = new Map<string, Answer>();
  for (const { hostnames, target, others } of Object.values(table.sites)) {
    const all = target ? [target, ...others] : [];
    const up = all.filter(({ down }) => down !== true);
    // Where none runs, the ingress goes on trying until one is there again.
    const answer = !target ? "parked" : up.length > 0 ? up : all;
    for (const hostname of hostnames) names.set(hostname.toLowerCase(), answer);
  }
  return names;
}
