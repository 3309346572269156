import type { ImageProvider } from "./image-build/image-provider.ts";
import type { SharedBases } from "./image-build/shared-bases.ts";
import type { PublicAccess } from "./databases/public-access.ts";
import type { BackupStore } from "./databases/backups/store.ts";
import type { Engine } from "./docker/engine.ts";
import type { Ingress } from "./ingress/ingress.ts";
import type { BuildRoom } from "./isolation/build-room.ts";
import type { Isolation } from "./isolation/isolation.ts";

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
  /** Left out: each build runs all its steps itself. */
  sharedBases?: SharedBases | undefined;
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
