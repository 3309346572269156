import type { JobArgs, JobKind, JobResult, StopNotice } from "../protocol/agent/jobs.ts";
import type { Phase } from "../protocol/agent/messages.ts";
import type { ImageProvider } from "./image-build/image-provider.ts";
import type { PublicAccess } from "./databases/public-access.ts";
import type { BackupStore } from "./databases/backups/store.ts";
import type { Engine } from "./docker/engine.ts";
import type { BuildRoom } from "./isolation/build-room.ts";
import type { Isolation } from "./isolation/isolation.ts";

/** What one run of a job may use to be stopped and to say how it goes. */
export type JobRun = {
  jobId: string;
  attempt: number;
  /** Aborted by cancel, drop, deadline or shutdown. Checked before every step with an effect. */
  signal: AbortSignal;
  /** One line of the deployment's log; known secret values are masked before it leaves the process. */
  log: (text: string, stream?: "system" | "stdout" | "stderr") => void;
  /** One line that a command wrote, with its time in nanoseconds; false: the log is full, and nothing more is taken. */
  print(line: { at: string; stream: "stdout" | "stderr"; text: string }): boolean;
  /** What it wrote last, where the log was full before. */
  printLast(lines: readonly { at: string; stream: "stdout" | "stderr"; text: string }[]): void;
  /** Where the log of this run, by an agent before this one, is to go on; null: at its beginning. */
  printedUntil: string | null;
  /** Done once the result is in the journal, and lost with the agent. */
  afterwards(work: () => Promise<void>): void;
  phase(phase: Phase, source?: { commit: string; commitMessage: string }): void;
};

/** The way traffic gets to containers. Every call is idempotent and returns when new requests see the change. */
export type Ingress = {
  /** Send every new request for these names to one of the targets; open connections stay where they are. */
  route(siteId: string, hostnames: readonly string[], targets: readonly Target[]): Promise<void>;
  /** The names answer 503 with a page that says the site is stopped, or what the notice says. */
  park(siteId: string, hostnames: readonly string[], notice?: StopNotice): Promise<void>;
  /** Other names for what is answered now. */
  rename(siteId: string, hostnames: readonly string[]): Promise<void>;
  /** A container in service has another address, or stopped or began to answer: same names. */
  readdress(siteId: string, target: Target): Promise<void>;
  /** Parks the site if this container is in service: same names. */
  withdraw(siteId: string, containerId: string): Promise<void>;
  unroute(siteId: string): Promise<void>;
  /** What the names of this site are answered with now: its replicas, in their order. */
  current(siteId: string): readonly Target[] | "parked" | null;
  /** All sites the ingress knows. */
  sites(): string[];
  /** The site's own name, then its domains. */
  hostnames(siteId: string): readonly string[];
  /** Sites that have containers here, of which it was lost which serve: any of them may, until a job has said it. */
  lost(): readonly string[];
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
};

/** A host's means, handed to every handler. */
export type Host = {
  /** Tells this agent's containers from those of another agent on the same engine. */
  agentId: string;
  engine: Engine;
  ingress: Ingress;
  isolation: Isolation;
  buildRoom: BuildRoom;
  /** Databases that are reached from outside. */
  publicAccess: PublicAccess;
  /** Left out: what no registry gives is missing. */
  provideImage?: ImageProvider | undefined;
  /** Where backups go to and come from. */
  backups: BackupStore;
  /** Fresh work directories are made below it, one per job, removed with the job. */
  workDirectory: string;
  settings: HostSettings;
  /** Removes the site's containers but these, once what they began has had time to end. */
  retire(siteId: string, keepContainerIds: readonly string[]): void;
  /** It is to serve again, and is not removed; false: it was at that moment. */
  recall(containerId: string): Promise<boolean>;
  /** So does this agent with one that the agent before it was about to remove; "over": its time is; null: it was not. */
  goOnRetiring(containerId: string): "under way" | "over" | null;
  /** Resolves when nothing is being removed that way any more. */
  retired(): Promise<void>;
  /** Megabytes in a site's volumes now; null when the host cannot tell. */
  volumesMb(siteId: string): Promise<number | null>;
  /** Name of the repository that holds a site's images; not to be guessed by another tenant's Dockerfile. */
  imageRepository(siteId: string): string;
};

export type HostSettings = {
  /** PEM bundle that builds must trust (behind a TLS-inspecting proxy), or null. */
  buildCaFile: string | null;
  /** `host[:port]` of Git servers reached over plain http and on private addresses: local ones, named by the operator. */
  insecureGitHosts: readonly string[];
  /** Images of this host's own that sites may be made of where no registry answers, as the operator named them. Left out: none. */
  localImages?: readonly string[] | undefined;
  /** Seconds an old container runs on after the swap at least, and at most while it serves what it began. */
  drainSeconds: number;
  drainMaxSeconds: number;
};

/** A failure whose message is for the site's owner: one plain sentence that says what to do. */
export class JobError extends Error {
  override name = "JobError";
}

export type Handler<K extends JobKind> = (host: Host, args: JobArgs<K>, run: JobRun) => Promise<JobResult<K>>;
export type Handlers = { [K in JobKind]: Handler<K> };
