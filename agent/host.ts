import type { ImageProvider } from "./image-build/image-provider.ts";
import type { NewerImages } from "./image-build/newer-images.ts";
import type { Readers } from "./image-build/readers.ts";
import type { SharedBases } from "./image-build/shared-bases.ts";
import type { PublicAccess } from "./databases/public-access.ts";
import type { BackupStore } from "./databases/backups/store.ts";
import type { ContainerSummary, Engine } from "./docker/engine.ts";
import type { Ingress } from "./ingress/ingress.ts";
import type { BuildRoom } from "./isolation/build-room.ts";
import type { Isolation } from "./isolation/isolation.ts";

/** A host's means, passed to every handler. */
export type Host = {
  /** Distinguishes this agent's containers from those of another agent on the same engine. */
  agentId: string;
  engine: Engine;
  ingress: Ingress;
  isolation: Isolation;
  buildRoom: BuildRoom;
  /** Databases with public access. */
  publicAccess: PublicAccess;
  /** undefined: images that no registry has are missing. */
  provideImage?: ImageProvider | undefined;
  /** undefined: an image that is here is never pulled again. */
  newerImages?: NewerImages | undefined;
  /** undefined: each build runs all its steps itself. */
  sharedBases?: SharedBases | undefined;
  /** The store of backups. */
  backups: BackupStore;
  /** The parent of the jobs' work directories; each job gets a new one, which is removed with the job. */
  workDirectory: string;
  /** The processes that read repositories. */
  readers: Readers;
  /** Where the times of a site's files are kept from one build to the next; undefined: they are not. */
  fileTimes?: ((siteId: string) => string) | undefined;
  settings: HostSettings;
  /** Removes the site's other containers after draining them. */
  retire(siteId: string, keepContainerIds: readonly string[]): void;
  /** Whether a container is draining, or being removed after that. */
  isRetiring(containerId: string): boolean;
  /** Returns a container to service; false if it was already being removed. */
  recall(containerId: string): Promise<boolean>;
  /**
   * Resumes draining a container that the previous agent was draining; "over": its deadline has passed; null: it was
   * not draining.
   */
  goOnRetiring(containerId: string): "under way" | "over" | null;
  /** Resolves when no container is draining any more. */
  retired(): Promise<void>;
  /** Stops a site's container in its grace period, keeps its last lines, and removes it. */
  discard(container: Pick<ContainerSummary, "id" | "labels">): Promise<void>;
  /** The present size of a site's volumes in megabytes; null if the host cannot tell. */
  volumesMb(siteId: string): Promise<number | null>;
  /** The repository of a site's images; another tenant's Dockerfile must not be able to guess it. */
  imageRepository: (siteId: string) => string;
};

export type HostSettings = {
  /** PEM bundle that builds must trust (behind a TLS-inspecting proxy), or null. */
  buildCaFile: string | null;
  /** `host[:port]` of Git servers that the operator allows over plain HTTP and on private addresses. */
  insecureGitHosts: readonly string[];
  /** Local images that the operator allows as base images if no registry has them. undefined: none. */
  localImages?: readonly string[] | undefined;
  /** The minimum and maximum seconds for which an old container drains after a swap. */
  drainSeconds: number;
  drainMaxSeconds: number;
  /** Seconds a new version must run on after its first answer before it is live. */
  probationSeconds: number;
};
