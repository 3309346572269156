import type Docker from "dockerode";
import type { Readable, Writable } from "node:stream";
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
  /** Process id of the container's init on the host; 0 when it does not run. */
  pid: number;
  /** What it may use of processors, in thousandths of one; null: it has no limit. */
  cpuMilli: number | null;
  /** How often Docker has started it again by itself. */
  restarts: number;
  labels: Record<string, string>;
  /** The user it runs as, `name` or `uid` with an optional `:group`; empty: root. */
  user: string;
  /** Where the engine keeps what the container itself wrote; null where its driver has no such folder. */
  ownFolder: string | null;
  /** Folders of the volumes without a name that its image asks for; they go with it. */
  ownVolumes: string[];
  /** `/etc/hosts` and the like, which the engine makes beside that folder, and root in the container writes to. */
  ownFiles: string[];
  /** Where the engine keeps what it prints; left out where it keeps no file. */
  logFile?: string;
  /** Variables as `KEY=value`, the image's own included. */
  env: string[];
  /** Its address in each network it joined. */
  addresses: Record<string, string>;
};
export type ContainerSummary = { id: string; name: string; labels: Record<string, string>; running: boolean };
export type VolumeSummary = { name: string; labels: Record<string, string>; folder: string };
/** Secrets travel in `env` or `input`, never in `command`, which every process of the host can read. */
export type Program = { command: readonly string[]; env?: readonly string[]; input?: string };
/** A program that runs. Its output must be read to the end; reading slowly holds it up. */
export type Piped = {
  input: Writable;
  output: AsyncIterable<Buffer>;
  isRunning(): Promise<boolean>;
  /** After the end of its output. */
  ended(): Promise<{ exitCode: number; stderr: string }>;
  /** Cuts the connection to it; the program itself may run on. */
  close(): void;
};
export type RegistryLogin = { username: string; password: string };
export type EngineFacts = {
  cpuCount: number;
  memoryMb: number;
  /** Where volumes and logs are kept, and images and what containers write where `imageDirectory` is the same. */
  rootDirectory: string;
  imageDirectory: string;
  cgroupDriver: string;
  isRootless: boolean;
  remapsUsers: boolean;
  /** Its rules for containers are nftables' own, beside iptables'. */
  usesNftables: boolean;
};
/** `kill`: somebody asked it to end. */
export const watchedActions = ["start", "kill", "oom", "die"] as const;
export type ContainerEvent = {
  action: (typeof watchedActions)[number];
  containerId: string;
  /** Seconds and nanoseconds since 1970, as `since` takes them. */
  time: string;
  labels: Labels;
  /** Of `die`. */
  exitCode: number | null;
};
export type LogRequest = { tail: number | "all"; since: string | null };

/**
 * Docker in narrow primitives. "Already there" and "already gone" are success; what a caller matches by is the exact name
 * and the labels set at container creation, as an image's own labels may say anything.
 */
export type Engine = {
  ping(): Promise<void>;
  ensureNetwork(name: string, bridge: string, labels: Labels): Promise<void>;
  /** The IPv4 addresses of a network's containers: `172.18.0.0/16`. */
  subnet(name: string): Promise<string>;
  /** The kernel's interfaces of Docker's default network, and of the networks of these labels. */
  bridges(labels: Labels): Promise<{ defaultBridge: string; managed: string[] }>;
  /** Removes the network unless there are containers of it, running or not. */
  removeNetwork(name: string): Promise<void>;
  /**
   * Creates the container, or takes the one of that name when its config label is the same. Another one of that name
   * goes, unless it is to be kept: then the new one has a longer name.
   */
  createContainer(spec: ContainerSpec, keepContainerIds?: readonly string[]): Promise<string>;
  startContainer(id: string): Promise<void>;
  stopContainer(id: string, graceSeconds: number): Promise<void>;
  removeContainer(id: string): Promise<void>;
  renameContainer(id: string, name: string): Promise<void>;
  inspectContainer(idOrName: string): Promise<ContainerState | null>;
  listContainers(labels: Labels): Promise<ContainerSummary[]>;
  /** Makes the volume unless it is there; it is never changed. */
  ensureVolume(name: string, labels: Labels): Promise<void>;
  volumes(labels: Labels): Promise<VolumeSummary[]>;
  /** false: a container uses it. */
  removeVolume(name: string): Promise<boolean>;
  /** A file or folder of a container, as a tar, also of one that never ran; null when it is not there. */
  readFiles(id: string, path: string): Promise<Readable | null>;
  /** Unpacks a tar into a folder of the container, with the owners it names. */
  writeFiles(id: string, folder: string, tar: Buffer | Readable): Promise<void>;
  /**
   * Runs a program in the container, with this as its input, and resolves when it ends. One that takes minutes or prints
   * megabytes is left to itself. @throws then, and at the signal
   */
  execute(
    id: string,
    program: Program,
    signal?: AbortSignal,
  ): Promise<{ exitCode: number; stdout: string; stderr: string }>;
  /** The same with streams; nothing of them is kept in memory. */
  pipe(id: string, program: Omit<Program, "input">): Promise<Piped>;
  /** Resolves with the exit code when the container ends; rejects when aborted. */
  waitForExit(id: string, signal: AbortSignal): Promise<number>;
  /** Of the first time it ends from then on, also when the engine has started it again meanwhile and knows its code no more. */
  firstExit(id: string, since: Date, signal: AbortSignal): Promise<number>;
  /** Whether it did, from then on: since Docker 24 a container that was started again does not say it any more. */
  ranOutOfMemory(state: Pick<ContainerState, "id" | "oomKilled" | "restarts">, since: Date): Promise<boolean>;
  lastLines(id: string, count: number): Promise<string[]>;
  /** The container's log with timestamps, as `LogParser` reads it; empty when there is no such container. */
  readLog(id: string, request: LogRequest): Promise<Buffer>;
  /** The same, then live until the container ends or the signal. */
  followLog(id: string, request: LogRequest, signal: AbortSignal): AsyncIterable<Buffer>;
  /** `sha256:…` of the image, or null. */
  imageId(reference: string): Promise<string | null>;
  imageLabels(reference: string): Promise<Labels>;
  tagImage(id: string, repository: string, tag: string): Promise<void>;
  removeImage(reference: string): Promise<void>;
  /** Every `repository:tag` of the repository. */
  imageTags(repository: string): Promise<string[]>;
  /** `sha256:…` of an image of this very name that was made on this host and came from no registry, or null. */
  localImage(reference: string): Promise<string | null>;
  /** `sha256:…` of what the registry has by this name. Registries are anybody's: one that does not answer is left. */
  registryDigest(reference: string, login: RegistryLogin | null, signal: AbortSignal): Promise<string>;
  pullImage(reference: string, login: RegistryLogin | null, signal: AbortSignal): Promise<void>;
  build(request: BuildRequest): Promise<void>;
  /** Removes the longest unused of what builds left, until it takes no more than this; answers the bytes that are free now. */
  pruneBuildCache(keepBytes: number, signal: AbortSignal): Promise<number>;
  /**
   * Calls back for what happens to containers of these labels, in order, until aborted; after an interruption of either
   * side it goes on after `since`, as far as the engine remembers.
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

/** Of a container whose name one has that is to be kept. */
export const nameBeside = ({ name, Labels }: ContainerSpec): string =>
  `${name}-${Labels[label.config]?.slice(0, 8)}`;
