import Docker from "dockerode";
import { readFile } from "node:fs/promises";
import http from "node:http";
import { addAbortSignal, type Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { answerTimeout } from "./answer-timeout.ts";
import type { CacheRecord } from "./build-cache.ts";
import { engineConnections } from "./connections.ts";
import {
  nameBeside,
  watchedActions,
  type ContainerEvent,
  type ContainerSpec,
  type ContainerState,
  type Engine,
  type LogRequest,
  type Program,
  type RegistryLogin,
  type TerminalSize,
} from "./engine.ts";
import { mebibyte } from "./mebibyte.ts";
import { stdoutOf, textOf } from "./stream-frames.ts";
import { freeSubnet, routedSubnets } from "./subnets.ts";
import { label, type Labels } from "./labels.ts";

type Info = {
  ServerVersion?: string;
  DockerRootDir: string;
  CgroupDriver: string;
  DriverStatus?: [name: string, value: string][] | null;
  Containerd?: { Address?: string };
  SecurityOptions?: string[] | null;
  /** Since Docker 29. */
  FirewallBackend?: { Driver?: string } | null;
};

type DiskUsage = {
  /** Since API 1.52, with `verbose`. */
  BuildCacheUsage?: { Items?: CacheRecord[] };
  BuildCache?: CacheRecord[] | null;
};
type PullMessage = { errorDetail?: { message?: string }; error?: string };
type ImageOrigin = {
  RepoTags?: string[] | null;
  RepoDigests?: string[] | null;
  /** Only with containerd's image store. */
  Descriptor?: object | undefined;
  Identity?: { Pull?: object[] };
};

/** Parses options such as `name=seccomp,profile=builtin`. */
const hasOption = ({ SecurityOptions }: Info, name: string): boolean =>
  SecurityOptions?.some((option) => option.split(",").includes(`name=${name}`)) ?? false;

/**
 * With containerd's image store, Docker 29's default, images are in containerd's directory: the host's containerd, or
 * one started by the engine.
 */
function imageDirectoryOf({ DockerRootDir, DriverStatus, Containerd }: Info): string {
  const isContainerds = DriverStatus?.some(([, value]) => value === "io.containerd.snapshotter.v1") ?? false;
  return isContainerds && Containerd?.Address === "/run/containerd/containerd.sock"
    ? "/var/lib/containerd"
    : DockerRootDir;
}

const statusOf = (error: unknown): number | undefined => (error as { statusCode?: number }).statusCode;

/** The engine's name for an anonymous volume. */
const namelessVolume = /^[0-9a-f]{64}$/;

/** Parses the engine's times; the year 1 stands for never. */
const timeOf = (text: string): Date | null => (text.startsWith("0001-") ? null : new Date(text));

async function unless(statuses: number[], work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (statuses.includes(statusOf(error) ?? 0)) return false;
    throw error;
  }
}

/**
 * Docker could not record that a container left its network. Until Docker is restarted, no container of that name can start, and the network
 * cannot be removed.
 */
const takenEndpoint = /endpoint with name (\S+) already exists in network (\S+)/;

const bridgeOption = "com.docker.network.bridge.name";
const bridgeOf = ({ Id, Options }: Docker.NetworkInspectInfo): string =>
  Options?.[bridgeOption] ?? `br-${Id.slice(0, 12)}`;

const loginFor = (reference: string, login: RegistryLogin | null) =>
  login && { authconfig: { ...login, serveraddress: registryOf(reference) } };

/** The name as the engine lists it: without Docker Hub's prefixes, and with a tag. */
export function tagOf(reference: string): string {
  const name = reference.replace(/^(?:docker\.io\/)?(?:library\/)?/, "");
  return /:[^/]*$/.test(name) ? name : `${name}:latest`;
}

/** The part before the first slash if it can be a host, otherwise Docker Hub. */
function registryOf(reference: string): string {
  const [first = "", ...rest] = reference.split("/");
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === "localhost");
  return isHost ? first : "https://index.docker.io/v1/";
}

const filters = (labels: Labels) => ({
  label: Object.entries(labels).map(([key, value]) => `${key}=${value}`),
});

/** By default dockerode also puts every option into the URL, where secrets would be logged and long values refused. */
const inBody = ({ name, ...body }: ContainerSpec) =>
  ({ _query: { name }, _body: body }) as Docker.ContainerCreateOptions;

const nameAttempts = 20;
const nameAgainMs = 100;
const removalMs = 30_000;
const executedBytesMax = 4 * 1024 * 1024;

export function createEngine({
  socketPath,
  answerTimeoutMs = 60_000,
  executeTimeoutMs = 120_000,
  registryTimeoutMs = 30_000,
}: {
  socketPath: string;
  /**
   * The engine may hang on one container, which must not block the others. Shorter than the time a cancelled job has
   * for cleaning up.
   */
  answerTimeoutMs?: number;
  executeTimeoutMs?: number;
  registryTimeoutMs?: number;
}): Engine {
  // dockerode's types lack the agent, which it passes on.
  const options = { socketPath, agent: engineConnections() };
  const docker = new Docker(options);
  // While its containers end, an ending engine still answers on open connections, and accepts no new one.
  const unkept = { socketPath, agent: new http.Agent() };
  const byNewConnections = new Docker(unkept);
  let losses = 0;
  const within = (moreMs = 0) => ({ abortSignal: answerTimeout(answerTimeoutMs + moreMs) });

  /**
   * Container events until aborted or the engine stops. `from` is in seconds since 1970, like `ContainerEvent.time`.
   */
  async function* events(
    of: Record<string, string[]>,
    from: string | null,
    signal: AbortSignal,
    onConnect?: () => void,
    until?: string,
  ): AsyncGenerator<ContainerEvent> {
    const stream = (await docker.getEvents({
      filters: { type: ["container"], ...of },
      ...(from !== null && { since: from as unknown as number }),
      ...(until !== undefined && { until: until as unknown as number }),
      abortSignal: signal,
    })) as Readable;
    onConnect?.();
    let rest = "";
    for await (const chunk of stream.setEncoding("utf8") as AsyncIterable<string>) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      yield* lines.filter(Boolean).map(containerEvent);
    }
  }

  /** Not dockerode's method, which holds a log that is not followed in memory. */
  async function* logStream(
    id: string,
    { tail, since }: LogRequest,
    follow: boolean,
    signal: AbortSignal,
  ): AsyncGenerator<Buffer> {
    const from = since === null ? {} : { since };
    const request = {
      path: `/containers/${id}/logs?`,
      method: "GET",
      options: { stdout: true, stderr: true, timestamps: true, tail, ...from, follow },
      isStream: true,
      statusCodes: { 200: true, 404: "no such container", 500: "server error" },
      abortSignal: signal,
    };
    const stream = await new Promise<unknown>((resolve, reject) =>
      docker.modem.dial(request, (error, found) => (error ? reject(error) : resolve(found))),
    );
    yield* stream as AsyncIterable<Buffer>;
  }

  async function inspectContainer(idOrName: string): Promise<ContainerState | null> {
    try {
      const found = await docker.getContainer(idOrName).inspect(within());
      return {
        id: found.Id,
        name: found.Name.replace(/^\//, ""),
        image: found.Image,
        running: found.State.Running,
        startedAt: timeOf(found.State.StartedAt),
        finishedAt: timeOf(found.State.FinishedAt),
        exitCode: found.State.ExitCode,
        oomKilled: found.State.OOMKilled,
        pid: found.State.Pid,
        cpuMilli: found.HostConfig.NanoCpus ? found.HostConfig.NanoCpus / 1_000_000 : null,
        memoryMb: found.HostConfig.Memory ? found.HostConfig.Memory / mebibyte : null,
        restarts: found.RestartCount,
        labels: found.Config.Labels,
        user: found.Config.User,
        ownFolder: (found.GraphDriver?.Data as { UpperDir?: string } | null)?.UpperDir ?? null,
        ownVolumes: found.Mounts.filter(
          (one) => one.Type === "volume" && namelessVolume.test(one.Name ?? ""),
        ).map(({ Source }) => Source),
        ownFiles: [found.HostsPath, found.HostnamePath, found.ResolvConfPath].filter(Boolean),
        ...(found.LogPath && { logFile: found.LogPath }),
        env: found.Config.Env,
        addresses: Object.fromEntries(
          Object.entries(found.NetworkSettings.Networks).map(([name, { IPAddress }]) => [name, IPAddress]),
        ),
      };
    } catch (error) {
      if (statusOf(error) === 404) return null;
      throw error;
    }
  }

  async function inspectImage(reference: string): Promise<(Docker.ImageInspectInfo & ImageOrigin) | null> {
    try {
      return await docker.getImage(reference).inspect();
    } catch (error) {
      if (statusOf(error) === 404) return null;
      throw error;
    }
  }

  /** The engine also accepts an id or its prefix, which may match another tenant's image. */
  async function imageNamed(reference: string) {
    const found = await inspectImage(reference);
    return found?.RepoTags?.includes(tagOf(reference)) ? found : null;
  }

  /** With containerd's image store every image has a digest; pulled ones, and those that a build began with, are marked from API 1.53 on. */
  async function wasMadeHere({ RepoDigests, Descriptor, Identity }: ImageOrigin): Promise<boolean> {
    if (!Descriptor) return (RepoDigests ?? []).length === 0;
    const { ApiVersion } = await docker.version();
    const [major = 0, minor = 0] = ApiVersion.split(".").map(Number);
    return (major > 1 || minor >= 53) && (Identity?.Pull ?? []).length === 0;
  }

  async function begin(id: string, { command, env = [] }: Omit<Program, "input">, signal?: AbortSignal) {
    const abortSignal = signal && { abortSignal: signal };
    const exec = await docker.getContainer(id).exec({
      ...abortSignal,
      Cmd: [...command],
      Env: [...env],
      AttachStdin: true,
      AttachStdout: true,
      AttachStderr: true,
    });
    return { exec, stream: await exec.start({ ...abortSignal, hijack: true, stdin: true }) };
  }

  /** The names of a network's endpoints whose container is gone, or does not run. */
  async function staleEndpoints(network: string): Promise<string[]> {
    const { Containers = {} } = await docker.getNetwork(network).inspect();
    return Object.entries(Containers).flatMap(([id, { Name }]) => (id.startsWith("ep-") ? [Name] : []));
  }

  /** @param endpoint no container has this name: Docker would take it for the container's */
  const freeEndpoint = (network: string, endpoint: string) =>
    unless([404], docker.getNetwork(network).disconnect({ Container: endpoint, Force: true }));

  async function unusedSubnet(): Promise<string> {
    const networks = await docker.listNetworks();
    const ofNetworks = networks.flatMap(
      ({ IPAM }) => IPAM?.Config?.flatMap(({ Subnet }) => Subnet ?? []) ?? [],
    );
    const routes = await readFile("/proc/net/route", "utf8").catch(() => "");
    const subnet = freeSubnet([...ofNetworks, ...routedSubnets(routes)]);
    if (subnet === null) throw new Error("No private subnet is free on this host for another network");
    return subnet;
  }

  const removeContainer = async (id: string) => {
    try {
      await docker.getContainer(id).remove({ force: true, v: true });
    } catch (error) {
      if (statusOf(error) === 404) return;
      if (statusOf(error) !== 409) throw error;
      // A removal is in progress; until it is complete the container uses its volumes and its image.
      const options = { condition: "removed", abortSignal: AbortSignal.timeout(removalMs) } as const;
      await unless([404], docker.getContainer(id).wait(options));
    }
  };

  return {
    inspectContainer,
    removeContainer,
    async ping(signal) {
      // dockerode's types lack the signal, which it passes on.
      const ping: (options?: { abortSignal: AbortSignal }) => Promise<unknown> =
        byNewConnections.ping.bind(byNewConnections);
      await ping(signal && { abortSignal: signal });
    },

    losses: () => losses,

    async ensureNetwork(name, bridge, labels) {
      if (await unless([404], docker.getNetwork(name).inspect())) return;
      const wanted = {
        Name: name,
        Driver: "bridge",
        CheckDuplicate: true,
        Labels: labels,
        Options: { [bridgeOption]: bridge },
      };
      for (let attempt = 1; ; attempt++)
        try {
          const IPAM = attempt === 1 ? undefined : { Config: [{ Subnet: await unusedSubnet() }] };
          return void (await unless([409], docker.createNetwork({ ...wanted, ...(IPAM && { IPAM }) })));
        } catch (error) {
          // The engine's own pools hold about thirty networks, and another job may take the same subnet concurrently.
          if (attempt > 5 || !/address pools?\b|[Pp]ool overlaps/.test(String(error))) throw error;
        }
    },

    async subnet(name) {
      const { IPAM } = await docker.getNetwork(name).inspect();
      const found = IPAM?.Config?.map(({ Subnet }) => Subnet).find((subnet) => subnet?.includes("."));
      if (found === undefined) throw new Error(`The network ${name} has no IPv4 addresses`);
      return found;
    },

    async bridges(labels) {
      const all = { driver: ["bridge"] };
      const [managed, builtIn] = await Promise.all([
        docker.listNetworks({ filters: { ...all, ...filters(labels) } }),
        docker.listNetworks({ filters: { ...all, type: ["builtin"] } }),
      ]);
      const [first] = builtIn;
      return { defaultBridge: first ? bridgeOf(first) : "docker0", managed: managed.map(bridgeOf) };
    },

    async removeNetwork(name) {
      // The engine counts running containers only, but another job's container may be about to start.
      const users = await docker.listContainers({ all: true, filters: { network: [name] } });
      if (users.length > 0) return;
      const network = docker.getNetwork(name);
      // 403: it has active endpoints.
      const remove = () => unless([403], unless([404, 409], network.remove()));
      if (await remove()) return;
      for (const endpoint of await staleEndpoints(name)) await freeEndpoint(name, endpoint);
      await remove();
    },

    async createContainer(wanted, keepContainerIds = []) {
      for (let spec = wanted, attempt = 1; ; attempt++) {
        try {
          return (await docker.createContainer(inBody(spec))).id;
        } catch (error) {
          if (statusOf(error) !== 409 || attempt > nameAttempts) throw error;
          const existing = await inspectContainer(spec.name);
          if (existing && existing.labels[label.config] === spec.Labels[label.config]) return existing.id;
          if (existing && keepContainerIds.includes(existing.id)) spec = { ...spec, name: nameBeside(spec) };
          else if (existing) await removeContainer(existing.id);
          // A removal is in progress.
          else await delay(nameAgainMs);
        }
      }
    },

    async startContainer(id) {
      const container = docker.getContainer(id);
      const start = () => unless([304], container.start(within()));
      try {
        await start();
      } catch (error) {
        const [, name, network] = takenEndpoint.exec(String(error)) ?? [];
        if (name === undefined || network === undefined) throw error;
        if (!(await staleEndpoints(network)).includes(name)) throw error;
        await container.rename({ name: `${name}-${id.slice(0, 12)}` });
        try {
          await freeEndpoint(network, name);
        } finally {
          await container.rename({ name });
        }
        await start();
      }
    },
    stopContainer: async (id, graceSeconds) =>
      void (await unless(
        [304, 404],
        docker.getContainer(id).stop({ t: graceSeconds, ...within(graceSeconds * 1000) }),
      )),

    limitContainer: async (id, limits) =>
      void (await unless([404], docker.getContainer(id).update({ ...limits, ...within() }))),
    pauseContainer: async (id) => void (await unless([404, 409], docker.getContainer(id).pause(within()))),
    // An engine refuses to resume one that is not paused in different ways.
    async resumeContainer(id) {
      const container = docker.getContainer(id);
      await unless(
        [404, 409],
        container.inspect(within()).then(({ State }) => (State.Paused ? container.unpause(within()) : null)),
      );
    },

    renameContainer: async (id, name) => void (await docker.getContainer(id).rename({ name })),

    async listContainers(labels) {
      const found = await docker.listContainers({ all: true, filters: filters(labels) });
      return found.map(({ Id, Names, Labels, State }) => ({
        id: Id,
        name: (Names[0] ?? "").replace(/^\//, ""),
        labels: Labels,
        // A paused one runs, and one between two tries of a crash loop, as its own record says.
        running: State === "running" || State === "paused" || State === "restarting",
      }));
    },

    ensureVolume: async (name, labels) =>
      void (await docker.createVolume({ Name: name, Driver: "local", Labels: labels })),

    async volumes(labels) {
      const { Volumes } = await docker.listVolumes({ filters: filters(labels) });
      return (Volumes ?? []).map(({ Name, Labels, Mountpoint }) => ({
        name: Name,
        labels: Labels,
        folder: Mountpoint,
      }));
    },

    async unclaimedVolumes(since) {
      const { Volumes } = await docker.listVolumes();
      // Later: one whose container has been made meanwhile is its own.
      const containers = await docker.listContainers({ all: true });
      const claimed = new Set(containers.flatMap(({ Mounts }) => Mounts.map(({ Name }) => Name)));
      return (Volumes ?? []).flatMap(({ Name, Labels, Mountpoint, ...more }) => {
        // In whole seconds.
        const madeAt = Date.parse((more as { CreatedAt?: string }).CreatedAt ?? "");
        const isNew = madeAt >= since.getTime() - 1000;
        return isNew && namelessVolume.test(Name) && !claimed.has(Name)
          ? [{ name: Name, labels: Labels, folder: Mountpoint }]
          : [];
      });
    },

    async removeVolume(name) {
      try {
        await docker.getVolume(name).remove();
      } catch (error) {
        if (statusOf(error) === 409) return false;
        if (statusOf(error) !== 404) throw error;
      }
      return true;
    },

    async readFiles(id, path) {
      try {
        return (await docker.getContainer(id).getArchive({ path })) as Readable;
      } catch (error) {
        if (statusOf(error) === 404) return null;
        throw error;
      }
    },

    writeFiles: async (id, folder, tar, signal) =>
      void (await docker
        .getContainer(id)
        .putArchive(tar, { path: folder, ...(signal && { abortSignal: signal }) })),

    async execute(id, { input = "", ...program }, signal) {
      const timeout = AbortSignal.timeout(executeTimeoutMs);
      const over = AbortSignal.any(signal ? [signal, timeout] : [timeout]);
      const [name] = program.command;
      const chunks: Buffer[] = [];
      try {
        const { exec, stream } = await begin(id, program, over);
        addAbortSignal(over, stream).end(input);
        let bytes = 0;
        for await (const chunk of stream as AsyncIterable<Buffer>) {
          bytes += chunk.length;
          if (bytes > executedBytesMax)
            throw new Error(`${name} printed more than ${executedBytesMax} bytes`);
          chunks.push(chunk);
        }
        const { ExitCode } = await exec.inspect({ abortSignal: over });
        const raw = Buffer.concat(chunks);
        return { exitCode: ExitCode ?? 1, stdout: textOf(raw, "stdout"), stderr: textOf(raw, "stderr") };
      } catch (error) {
        signal?.throwIfAborted();
        throw timeout.aborted
          ? new Error(`${name} did not end within ${executeTimeoutMs / 1000} seconds`, { cause: error })
          : error;
      }
    },

    async pipe(id, program) {
      const { exec, stream } = await begin(id, program);
      let stderr = "";
      return {
        input: stream,
        output: stdoutOf(stream as AsyncIterable<Buffer>, (last) => (stderr = last)),
        isRunning: async () => (await exec.inspect()).Running,
        async ended() {
          for (;;) {
            const { Running, ExitCode } = await exec.inspect();
            if (!Running) return { exitCode: ExitCode ?? 1, stderr };
            await delay(10);
          }
        },
        close: () => void stream.on("error", () => undefined).destroy(),
      };
    },

    async terminal(id, { command, env = [] }, size) {
      const exec = await docker.getContainer(id).exec({
        ...within(),
        Cmd: [...command],
        Env: [...env],
        Tty: true,
        AttachStdin: true,
        AttachStdout: true,
        AttachStderr: true,
      });
      const duplex = await exec.start({ hijack: true, stdin: true, Tty: true });
      const resize = async ({ columns, rows }: TerminalSize) =>
        // 409 and 500: it has ended, or has not begun.
        void (await unless([404, 409, 500], exec.resize({ h: rows, w: columns, ...within() })));
      await resize(size);
      return {
        duplex,
        resize,
        async state() {
          const { Running, Pid, ExitCode } = await exec.inspect(within());
          return { pid: Running && Pid > 0 ? Pid : null, exitCode: Running ? null : ExitCode };
        },
      };
    },

    async waitForExit(id, signal) {
      const { StatusCode } = (await docker.getContainer(id).wait({ abortSignal: signal })) as {
        StatusCode: number;
      };
      return StatusCode;
    },

    async firstExit(id, since, signal) {
      const from = String(since.getTime() / 1000);
      for await (const { exitCode } of events({ container: [id], event: ["die"] }, from, signal))
        return exitCode ?? 0;
      throw new Error("The engine ended its events.");
    },

    async ranOutOfMemory({ id, oomKilled, restarts }, since) {
      if (oomKilled || restarts === 0) return oomKilled;
      const [from, until] = [since.getTime(), Date.now()].map((at) => String(at / 1000));
      const signal = answerTimeout(answerTimeoutMs);
      for await (const _ of events({ container: [id], event: ["oom"] }, from ?? "", signal, undefined, until))
        return true;
      return false;
    },

    async lastLines(id, count, before) {
      // The engine takes the last lines first, and then drops those that are too late.
      const range = before ? { tail: count + 500, until: before.getTime() / 1000 } : { tail: count };
      const raw = await docker.getContainer(id).logs({ stdout: true, stderr: true, ...range, follow: false });
      return textOf(raw).split("\n").filter(Boolean).slice(-count);
    },

    async readLog(id, { tail, since }) {
      try {
        const from = since === null ? {} : { since: since as unknown as number };
        return await docker.getContainer(id).logs({
          stdout: true,
          stderr: true,
          timestamps: true,
          tail: tail as number,
          ...from,
          follow: false,
        });
      } catch (error) {
        // 409: it is being removed.
        if ([404, 409].includes(statusOf(error) ?? 0)) return Buffer.alloc(0);
        throw error;
      }
    },

    followLog: (id, request, signal) => logStream(id, request, true, signal),
    streamLog: (id, request, signal) => logStream(id, request, false, signal),

    imageId: async (reference) => (await inspectImage(reference))?.Id ?? null,

    imageLabels: async (reference) => (await inspectImage(reference))?.Config.Labels ?? {},

    async imageDeclares(reference) {
      // The engine writes null for none.
      const config: Partial<Docker.ImageInspectInfo["Config"]> =
        (await inspectImage(reference))?.Config ?? {};
      return {
        ports: Object.keys(config.ExposedPorts ?? {}).length,
        volumes: Object.keys(config.Volumes ?? {}).length,
        bytes: Buffer.byteLength(JSON.stringify(config)),
      };
    },

    localImage: async (reference) => (await imageNamed(reference))?.Id ?? null,

    async wasPulled(reference) {
      const found = await imageNamed(reference);
      return found !== null && !(await wasMadeHere(found));
    },

    async removeUnnamed(id) {
      if (((await inspectImage(id))?.RepoTags ?? []).length > 0) return false;
      await unless([404, 409], docker.getImage(id).remove({ force: false }));
      return (await inspectImage(id)) === null;
    },

    async removeUnnamedImages(labels) {
      const found = await docker.listImages({ filters: { dangling: ["true"], ...filters(labels) } });
      for (const { Id } of found) await unless([404, 409], docker.getImage(Id).remove({ force: false }));
    },

    tagImage: async (id, repository, tag) => void (await docker.getImage(id).tag({ repo: repository, tag })),
    async commitContainer(id, repo, tag, labels) {
      const _query = { container: id, repo, tag, pause: false };
      const made: unknown = await docker.getContainer(id).commit({ _query, _body: { Labels: labels } });
      return (made as { Id: string }).Id;
    },

    // 409: a container still uses it; removing that container removes the image later.
    removeImage: async (reference) =>
      void (await unless([404, 409], docker.getImage(reference).remove({ force: false }))),

    async imageTags(repository) {
      const found = await docker.listImages({ filters: { reference: [repository] } });
      const tags = found.flatMap(({ RepoTags }) => RepoTags ?? []);
      return tags.filter((tag) => tag.startsWith(`${repository}:`));
    },

    async imageSizes(repository) {
      const found = await docker.listImages({ filters: { reference: [repository] } });
      return found.flatMap(({ RepoTags, Size }) =>
        (RepoTags ?? []).flatMap((tag) =>
          tag.startsWith(`${repository}:`)
            ? [{ tag: tag.slice(repository.length + 1), sizeBytes: Size }]
            : [],
        ),
      );
    },

    async registryDigest(reference, login, signal) {
      // Not docker.getImage(…).distribution(), which takes no signal.
      const request = {
        ...loginFor(reference, login),
        path: `/distribution/${reference}/json`,
        method: "GET",
        statusCodes: { 200: true, 401: "no such image", 500: "server error" },
        abortSignal: AbortSignal.any([signal, AbortSignal.timeout(registryTimeoutMs)]),
      };
      const answer = await new Promise<unknown>((resolve, reject) =>
        docker.modem.dial(request, (error: Error | null, found: unknown) =>
          error ? reject(error) : resolve(found),
        ),
      );
      return (answer as Docker.ImageDistributionInfo).Descriptor.digest;
    },

    async pullImage(reference, login, signal) {
      const options = { ...loginFor(reference, login), abortSignal: signal };
      const stream = (await docker.pull(reference, options)) as Readable;
      const progress = await new Promise<PullMessage[]>((resolve, reject) =>
        docker.modem.followProgress(stream, (error: Error | null, messages: PullMessage[]) =>
          error ? reject(error) : resolve(messages),
        ),
      );
      const failure = progress.map(({ errorDetail, error }) => errorDetail?.message ?? error).find(Boolean);
      if (failure !== undefined) throw new Error(failure);
    },

    async build(request) {
      const { buildImage } = await import("./buildkit.ts");
      await buildImage(docker.modem, request);
    },

    async pruneBuildCache(keepBytes, signal) {
      // dockerode's method sends no limit and would remove everything; API 1.48 renamed the parameters. Not `all`:
      // shared image data would count as freed although it is not.
      const bound = { "keep-storage": keepBytes, "reserved-space": keepBytes, "max-used-space": keepBytes };
      const options = {
        path: "/build/prune?",
        method: "POST",
        options: bound,
        abortSignal: signal,
        statusCodes: { 200: true, 500: "server error" },
      };
      const { SpaceReclaimed } = await new Promise<{ SpaceReclaimed: number }>((resolve, reject) =>
        docker.modem.dial(options, (error, answer) =>
          error ? reject(error) : resolve(answer as { SpaceReclaimed: number }),
        ),
      );
      return SpaceReclaimed;
    },

    async buildCache() {
      // Older engines name no cache mount's namespace, and would measure containers and volumes as well.
      const [major = 0, minor = 0] = (await docker.version()).ApiVersion.split(".").map(Number);
      if (major === 1 && minor < 42) return null;
      const options = {
        path: "/system/df?",
        method: "GET",
        options: { type: "build-cache", verbose: true },
        abortSignal: AbortSignal.timeout(answerTimeoutMs),
        statusCodes: { 200: true, 500: "server error" },
      };
      const { BuildCacheUsage, BuildCache } = await new Promise<DiskUsage>((resolve, reject) =>
        docker.modem.dial(options, (error, answer) => (error ? reject(error) : resolve(answer as DiskUsage))),
      );
      return BuildCacheUsage?.Items ?? BuildCache ?? [];
    },

    watchContainers(labels, signal, { since, onEvent, onConnect }) {
      const watch = async () => {
        const of = { event: [...watchedActions], ...filters(labels) };
        for await (const event of events(of, since(), signal, onConnect)) onEvent(event);
      };
      const again = (): void => {
        if (signal.aborted) return;
        void watch()
          .catch(() => undefined)
          .then(() => void (signal.aborted || losses++))
          .then(() => delay(1000, undefined, { signal, ref: false }))
          .then(again, () => undefined);
      };
      again();
    },

    async facts() {
      const info = (await docker.info()) as Info;
      return {
        version: info.ServerVersion ?? "",
        rootDirectory: info.DockerRootDir,
        imageDirectory: imageDirectoryOf(info),
        cgroupDriver: info.CgroupDriver,
        isRootless: hasOption(info, "rootless"),
        remapsUsers: hasOption(info, "userns"),
        usesNftables: info.FirewallBackend?.Driver?.startsWith("nftables") ?? false,
      };
    },
  };
}

function containerEvent(line: string): ContainerEvent {
  const { Action, Actor } = JSON.parse(line) as {
    Action: ContainerEvent["action"];
    Actor: { ID: string; Attributes: Labels };
  };
  // It has more digits than a JSON number keeps.
  const nanoseconds = /"timeNano":(\d+)/.exec(line)?.[1] ?? "0".repeat(10);
  return {
    action: Action,
    containerId: Actor.ID,
    time: `${nanoseconds.slice(0, -9)}.${nanoseconds.slice(-9)}`,
    labels: Actor.Attributes,
    exitCode: Action === "die" ? Number(Actor.Attributes["exitCode"]) : null,
  };
}
