import type { StopNotice } from "../../protocol/agent/stop-notice.ts";
import type { HostIngressRules } from "../../protocol/api/ingress.ts";

/** The way traffic gets to containers. Every call is idempotent and returns when new requests see the change. */
export type Ingress = {
  /** Send every new request for these names to one of the targets; open connections stay where they are. */
  route(siteId: string, hostnames: readonly string[], targets: readonly Target[]): Promise<void>;
  /** The same, but what is answered now is kept beside it until `settle` or `takeBack`, also over the end of the agent. */
  routeOnProbation(siteId: string, hostnames: readonly string[], targets: readonly Target[]): Promise<void>;
  /** The probation is passed: nothing is kept beside what serves. */
  settle(siteId: string): Promise<void>;
  /** The probation has failed: what was answered before it is answered again, by these of its containers. */
  takeBack(siteId: string, targets: readonly Target[]): Promise<void>;
  /** During a probation, the containers that served before it; null: there is no probation. */
  fallback(siteId: string): readonly Target[] | null;
  /** The names answer 503 with a page that says the site is stopped, or what the notice says. */
  park(siteId: string, hostnames: readonly string[], notice?: StopNotice): Promise<void>;
  /** What the ingress does for a site, whatever answers it; kept until `unroute`. Nothing changes if newer ones are known. */
  rule(siteId: string, rules: HostIngressRules, readAtMs?: number): Promise<void>;
  /** Names and rules for what is answered now, and for what jobs put into service that were sent before. */
  tell(siteId: string, told: Told): Promise<void>;
  /** These names, or those that the site was told of since they were read. */
  newest(siteId: string, told: Pick<Told, "hostnames" | "readAtMs">): readonly string[];
  /** Containers in service, or kept for the end of a probation, have other addresses, or stopped or began to answer: same names. */
  readdress(targets: readonly Target[]): Promise<void>;
  /** Takes this container out of service: its site is parked, or answered by what served before its probation. Same names. */
  withdraw(siteId: string, containerId: string): Promise<void>;
  unroute(siteId: string): Promise<void>;
  /** All sites, by their ids, whose requests go to another host; a site that is routed or unrouted here is none of them. */
  forward(forwards: Readonly<Record<string, Forward>>): Promise<void>;
  /** What the names of this site are answered with now: its replicas, in their order. */
  current(siteId: string): readonly Target[] | "parked" | null;
  /** All sites the ingress knows. */
  sites(): string[];
  /** The site's own name, then its domains. */
  hostnames(siteId: string): readonly string[];
  /** Sites that have containers here, of which it was lost which serve: any of them may, until a job has said it. */
  lost(): readonly string[];
};

/** Where requests for a site that has left this host are passed on to, while visitors may still come here. */
export type Forward = { hostnames: string[]; hostId: string; address: string; port: number };

/** @property readAtMs when the control plane read it; what does not say so is taken for new */
type Told = {
  hostnames: readonly string[];
  ingress?: HostIngressRules | undefined;
  readAtMs?: number | undefined;
};

/** The containers in service: none of a site that is stopped, or not known. */
export function servingOf(ingress: Pick<Ingress, "current">, siteId: string): readonly Target[] {
  const current = ingress.current(siteId);
  return current === null || current === "parked" ? [] : current;
}

export const servingIds = (ingress: Pick<Ingress, "current">, siteId: string): string[] =>
  servingOf(ingress, siteId).map(({ containerId }) => containerId);

/** A container as the ingress reaches it. The id tells it after a restart gave it another address. */
export type Target = {
  containerId: string;
  address: string;
  port: number;
  /** Nobody is sent there while another answers. */
  down?: boolean | undefined;
  /** What it runs, for when it is gone and cannot be asked. */
  deploymentId?: string | undefined;
  /** The process that has the address (`holderOf`): nobody is sent there once that has ended. */
  holder?: string | undefined;
};
