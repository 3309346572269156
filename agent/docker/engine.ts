import type Docker from "dockerode";
import type { Duplex, Readable, Writable } from "node:stream";
import type { CacheRecord } from "./build-cache.ts";
import type { BuildRequest } from "./buildkit.ts";
import { label, type Labels } from "./labels.ts";

export type ContainerSpec = Docker.ContainerCreateOptions & { name: string; Labels: Record<string, string> };
export type ContainerState = {
  id: string;
  name: string;
  image: string;
  running: boolean;
  /** null: it never ran, or never ended. */
  startedAt: Date | null;
  finishedAt: Date | null;
  exitCode: number;
  oomKilled: boolean;
  /** Process id of the container's init on the host; 0 if it does not run. */
  pid: number;
  /** CPU limit in thousandths of a core; null: no limit. */
  cpuMilli: number | null;
  /** Memory limit, which may have been lowered since the container was created; null: no limit. */
  memoryMb: number | null;
  /** The number of restarts by Docker itself. */
  restarts: number;
  labels: Record<string, string>;
  /** The user it runs as, `name` or `uid` with an optional `:group`; empty: root. */
  user: string;
  /** The directory of the container's writable layer; null if the storage driver has none. */
  ownFolder: string | null;
  /** Directories of the anonymous volumes declared by its image, which are removed with it. */
  ownVolumes: string[];
  /**
   * `/etc/hosts` and similar files that the engine creates outside that directory and root in the container can write
   * to.
   */
  ownFiles: string[];
  /** The file of its output; undefined if the log driver keeps none. */
  logFile?: string;
  /** Variables as `KEY=value`, the image's own included. */
  env: string[];
  /** Its address in each network it joined. */
  addresses: Record<string, string>;
};
/** When it was started again after it had ended; null: it was not. Between the two the engine calls it running, too. */
export const startedAgainAt = (state: ContainerState | null): Date | null =>
  state?.startedAt && state.finishedAt && state.startedAt > state.finishedAt ? state.startedAt : null;

export type ContainerSummary = { id: string; name: string; labels: Record<string, string>; running: boolean };
export type VolumeSummary = { name: string; labels: Record<string, string>; folder: string };
/** Secrets are passed in `env` or `input`, never in `command`, which every process on the host can read. */
export type Program = { command: readonly string[]; env?: readonly string[]; input?: string };
/** A running program. Its output must be read to the end; slow reading blocks it. */
export type Piped = {
  input: Writable;
  output: AsyncIterable<Buffer>;
  isRunning(): Promise<boolean>;
  /** Resolves after the end of its output. */
  ended(): Promise<{ exitCode: number; stderr: string }>;
  /** Closes the connection; the program itself may keep running. */
  close(): void;
};
export type TerminalSize = { columns: number; rows: number };
/** A program with a terminal. Slow reading blocks it. */
type TerminalProgram = {
  duplex: Duplex;
  resize(size: TerminalSize): Promise<void>;
  /** `pid`: on the host; null: it has ended. `exitCode` is null until then. */
  state(): Promise<{ pid: number | null; exitCode: number | null }>;
};
export type RegistryLogin = { username: string; password: string };
export type EngineFacts = {
  /** Of its release, such as `28.5.2` or `20.10.24+dfsg1`. */
  version: string;
  /** The directory of volumes and logs, and of images and writable layers if `imageDirectory` is the same. */
  rootDirectory: string;
  imageDirectory: string;
  cgroupDriver: string;
  isRootless: boolean;
  remapsUsers: boolean;
  /** The engine's own rules are in nftables, beside iptables'. */
  usesNftables: boolean;
};
/** `kill`: a signal was requested. */
export const watchedActions = ["start", "kill", "oom", "die"] as const;
export type ContainerEvent = {
  action: (typeof watchedActions)[number];
  containerId: string;
  /** Seconds and nanoseconds since 1970, in the format of `since`. */
  time: string;
  labels: Labels;
  /** Only for `die`. */
  exitCode: number | null;
};
export type LogRequest = { tail: number | "all"; since: string | null };

/**
 * Docker in narrow primitives. "Already exists" and "already gone" count as success. Callers match by exact name and
 * by labels set at container creation, because an image's own labels are untrusted.
 */
export type Engine = {
  /** @throws also if it no longer accepts connections, and only answers on open ones */
  ping(signal?: AbortSignal): Promise<void>;
  /** How often what follows containers has lost the engine, or not reached it: more than before, and it was restarted. */
  losses(): number;
  ensureNetwork(name: string, bridge: string, labels: Labels): Promise<void>;
  /** The IPv4 subnet of a network: `172.18.0.0/16`. */
  subnet(name: string): Promise<string>;
  /** The kernel's interfaces of Docker's default network, and of the networks with these labels. */
  bridges(labels: Labels): Promise<{ defaultBridge: string; managed: string[] }>;
  /** Removes the network unless it has containers, running or not. */
  removeNetwork(name: string): Promise<void>;
  /**
   * Creates the container, or returns the one of that name if its config label is the same. Another one of that name
   * is removed, unless it is to be kept: then the new one gets a longer name.
   */
  createContainer(spec: ContainerSpec, keepContainerIds?: readonly string[]): Promise<string>;
  startContainer(id: string): Promise<void>;
  stopContainer(id: string, graceSeconds: number): Promise<void>;
  /** Freezes its processes. One that has ended is left alone. */
  pauseContainer(id: string): Promise<void>;
  /** One that is not paused is left alone. */
  resumeContainer(id: string): Promise<void>;
  /** Of one that runs at once. @throws if the kernel does not take the memory from it */
  limitContainer(id: string, limits: NonNullable<ContainerSpec["HostConfig"]>): Promise<void>;
  removeContainer(id: string): Promise<void>;
  renameContainer(id: string, name: string): Promise<void>;
  inspectContainer(idOrName: string): Promise<ContainerState | null>;
  listContainers(labels: Labels): Promise<ContainerSummary[]>;
  /** Creates the volume if it does not exist; an existing one is never changed. */
  ensureVolume(name: string, labels: Labels): Promise<void>;
  volumes(labels: Labels): Promise<VolumeSummary[]>;
  /** Nameless volumes made since then that no container has: the engine is making theirs, or could not. */
  unclaimedVolumes(since: Date): Promise<VolumeSummary[]>;
  /** @returns false if a container uses it */
  removeVolume(name: string): Promise<boolean>;
  /** A file or directory of a container, running or not, as a tar; null if it does not exist. */
  readFiles(id: string, path: string): Promise<Readable | null>;
  /** Unpacks a tar into a directory of the container, with the owners in its entries. Aborted, the rest of it is not waited for. */
  writeFiles(id: string, folder: string, tar: Buffer | Readable, signal?: AbortSignal): Promise<void>;
  /**
   * Runs a program in the container with this input and resolves when it ends. @throws if it takes minutes or prints
   * megabytes (it keeps running then), and on abort
   */
  execute(
    id: string,
    program: Program,
    signal?: AbortSignal,
  ): Promise<{ exitCode: number; stdout: string; stderr: string }>;
  /** The same with streams; nothing is kept in memory. */
  pipe(id: string, program: Omit<Program, "input">): Promise<Piped>;
  /** The same with a terminal, for a person. The program runs on when the connection ends. */
  terminal(id: string, program: Omit<Program, "input">, size: TerminalSize): Promise<TerminalProgram>;
  /** Resolves with the exit code when the container ends; rejects when aborted. */
  waitForExit(id: string, signal: AbortSignal): Promise<number>;
  /** The exit code of its first end after `since`, even if the engine has restarted it and no longer keeps the code. */
  firstExit(id: string, since: Date, signal: AbortSignal): Promise<number>;
  /** Whether it ran out of memory after `since`: since Docker 24 a restarted container no longer reports it. */
  ranOutOfMemory(state: Pick<ContainerState, "id" | "oomKilled" | "restarts">, since: Date): Promise<boolean>;
  /** @param before of a container that was started again: only what came before that start */
  lastLines(id: string, count: number, before?: Date | null): Promise<string[]>;
  /** The container's log with timestamps, as `LogParser` reads it; empty if there is no such container, or no longer. */
  readLog(id: string, request: LogRequest): Promise<Buffer>;
  /** The same, followed live until the container ends or the signal aborts. */
  followLog(id: string, request: LogRequest, signal: AbortSignal): AsyncIterable<Buffer>;
  /** What there is now, piece by piece, for logs of any length. @throws if there is no such container */
  streamLog(id: string, request: LogRequest, signal: AbortSignal): AsyncIterable<Buffer>;
  /** `sha256:…` of the image, or null. */
  imageId(reference: string): Promise<string | null>;
  /** Whether an image of exactly this name is here that a registry gave; where the engine does not say, one did. */
  wasPulled(reference: string): Promise<boolean>;
  /** Removes an image that has no name any more. @returns false if it is named, or a container uses it */
  removeUnnamed(id: string): Promise<boolean>;
  /** Removes the images with these labels that have no name and that no container uses. */
  removeUnnamedImages(labels: Labels): Promise<void>;
  imageLabels(reference: string): Promise<Labels>;
  /** What it says of its containers: how many exposed ports and volumes, and the bytes of all of it as JSON. */
  imageDeclares(reference: string): Promise<{ ports: number; volumes: number; bytes: number }>;
  tagImage(id: string, repository: string, tag: string): Promise<void>;
  /** Makes an image of what a container is, under this name. @returns its id */
  commitContainer(id: string, repository: string, tag: string, labels: Labels): Promise<string>;
  removeImage(reference: string): Promise<void>;
  /** Every `repository:tag` of the repository. */
  imageTags(repository: string): Promise<string[]>;
  /** The same tags with the size of each image, shared layers included. */
  imageSizes(repository: string): Promise<{ tag: string; sizeBytes: number }[]>;
  /** `sha256:…` of an image of exactly this name, or null. */
  localImage(reference: string): Promise<string | null>;
  /**
   * `sha256:…` of the registry's image of this name. Registries are untrusted: one that does not answer is given up
   * on.
   */
  registryDigest(reference: string, login: RegistryLogin | null, signal: AbortSignal): Promise<string>;
  pullImage(reference: string, login: RegistryLogin | null, signal: AbortSignal): Promise<void>;
  build(request: BuildRequest): Promise<void>;
  /** Removes the least recently used build cache until at most this much is left; returns the bytes freed. */
  pruneBuildCache(keepBytes: number, signal: AbortSignal): Promise<number>;
  /** What its builds have cached; null if the engine does not say whose it is. */
  buildCache(): Promise<CacheRecord[] | null>;
  /**
   * Calls back for events of containers with these labels, in order, until aborted. After an interruption it resumes
   * from `since`, as far as the engine remembers.
   */
  watchContainers(
    labels: Labels,
    signal: AbortSignal,
    watcher: {
      since: () => string | null;
      onEvent: (event: ContainerEvent) => void;
      onConnect?: () => void;
    },
  ): void;
  facts(): Promise<EngineFacts>;
};

/** The name for a container whose regular name belongs to one that is kept. */
export const nameBeside = ({ name, Labels }: ContainerSpec): string =>
  `${name}-${Labels[label.config]?.slice(0, 8)}`;
