import { createHash } from "node:crypto";
import { posix } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import tar from "tar-stream";
import { nameBeside, type ContainerSpec, type Engine } from "../../agent/docker/engine.ts";
import { readEntries } from "../../agent/docker/files-in.ts";
import type { Files, MemoryContainer } from "./memory-container.ts";
import { execute, pipe, starts } from "./memory-redis.ts";
import { received } from "./received.ts";

type MemoryState = {
  made: number;
  containers: MemoryContainer[];
  networks: string[];
  volumes: Record<string, { labels: Record<string, string>; files: Files }>;
  /** `repository:tag` → image id. */
  images: Record<string, string>;
  /** By image id; images built from now on get `builtWith` as well. */
  imageLabels: Record<string, Record<string, string>>;
  builtWith: Record<string, string>;
  /** Untagged images that nobody has removed. */
  nameless: string[];
  /** Started containers of commands, which end at once. */
  ran: string[];
};

const refused = (statusCode: number, said: string) =>
  Promise.reject(Object.assign(new Error(`(HTTP code ${statusCode}) ${said}`), { statusCode }));
const done = <T>(value: T) => Promise.resolve(value);
const has = (labels: Record<string, string>, wanted: Record<string, string>) =>
  Object.entries(wanted).every(([key, value]) => labels[key] === value);
const nothing: MemoryState = {
  made: 0,
  containers: [],
  networks: [],
  volumes: {},
  images: {},
  imageLabels: {},
  builtWith: {},
  nameless: [],
  ran: [],
};

/** A variable of an app that answers, and exits again and again. */
export const exitsSoon = "EXITS=soon";

/**
 * An engine whose containers are records, as strict as Docker about missing objects and objects in use. Each start
 * gives a container another address of this machine, all of which answer alike. Databases are Redis;
 * `memory-redis.ts` implements what agents use of it.
 */
export class MemoryEngine {
  readonly state: MemoryState;

  constructor(state: MemoryState = nothing) {
    this.state = structuredClone(state);
  }

  find(idOrName: string): MemoryContainer | undefined {
    return this.state.containers.find(({ id, name }) => id === idOrName || name === idOrName);
  }

  /** The files of a container's directory: a volume's, or its own. */
  private filesAt(container: MemoryContainer, folder: string): Files {
    const volume = container.mounts[folder];
    return volume === undefined ? container.files : (this.state.volumes[volume]?.files ?? {});
  }

  /** The part of an engine that agents use; any other member is missing. */
  readonly engine = {
    ensureNetwork: (name) => done(void (this.state.networks = [...new Set([...this.state.networks, name])])),
    subnet: () => done("172.18.0.0/16"),
    removeNetwork: (name) => {
      if (this.state.containers.every(({ network }) => network !== name))
        this.state.networks = this.state.networks.filter((one) => one !== name);
      return done(undefined);
    },
    createContainer: async (spec: ContainerSpec, kept: readonly string[] = []): Promise<string> => {
      const { name, Image = "", Env = [], Cmd = [], Labels: labels, HostConfig } = spec;
      const there = this.find(name);
      if (there && there.labels["berth.config"] === labels["berth.config"]) return there.id;
      if (there && kept.includes(there.id))
        return this.engine.createContainer({ ...spec, name: nameBeside(spec) }, kept);
      if (there) await this.engine.removeContainer(there.id);
      const image = Object.values(this.state.images).find((id) => id === Image) ?? this.state.images[Image];
      if (!image) return refused(404, `No such image: ${Image}`);
      const mounts = Object.fromEntries(
        (HostConfig?.Mounts ?? []).map(({ Source, Target }) => [Target, Source]),
      );
      // Docker creates missing volumes, without labels.
      for (const volume of Object.values(mounts)) this.state.volumes[volume] ??= { labels: {}, files: {} };
      const id = `container-${++this.state.made}`;
      this.state.containers.push({
        id,
        name,
        image,
        labels,
        env: Env,
        command: [...Cmd],
        network: HostConfig?.NetworkMode ?? "",
        mounts,
        files: {},
        running: false,
        wasStarted: false,
        isLooping: false,
        address: "",
        users: [],
      });
      return id;
    },
    startContainer: (id) => {
      const found = this.find(id);
      if (!found) return refused(404, `No such container: ${id}`);
      if (found.network !== "none" && !this.state.networks.includes(found.network))
        return refused(404, `network ${found.network} not found`);
      if (found.running) return done(undefined);
      const address = `127.0.1.${(++this.state.made % 250) + 1}`;
      const isLooping = found.command.includes("--dir") && !starts(found, this.filesAt(found, "/data"));
      const isCommand = Boolean(found.labels["berth.command"]);
      if (isCommand) this.state.ran.push(found.name);
      Object.assign(found, { running: !isCommand, wasStarted: true, isLooping, address });
      return done(undefined);
    },
    stopContainer: (id) => done(void Object.assign(this.find(id) ?? {}, { running: false, address: "" })),
    limitContainer: () => done(undefined),
    pauseContainer: () => done(undefined),
    resumeContainer: () => done(undefined),
    renameContainer: (id, name) => done(void Object.assign(this.find(id) ?? {}, { name })),
    removeContainer: (idOrName) =>
      done(void (this.state.containers = this.state.containers.filter((one) => one !== this.find(idOrName)))),
    inspectContainer: (idOrName) => {
      const found = this.find(idOrName);
      if (!found) return done(null);
      const addresses = { [found.network]: found.address };
      const restarts = found.isLooping || found.env.includes(exitsSoon) ? ++this.state.made : 0;
      const startedAt = found.wasStarted ? new Date() : null;
      const finishedAt = found.running ? null : startedAt;
      const ended = { finishedAt, exitCode: 0, oomKilled: false };
      const state = { ...found, ...ended, startedAt, addresses, user: "", pid: 0, cpuMilli: null, restarts };
      return done(state as never);
    },
    listContainers: (labels) =>
      done(this.state.containers.filter((one) => has(one.labels, labels)).map((one) => ({ ...one }))),
    ensureVolume: (name, labels) => done(void (this.state.volumes[name] ??= { labels, files: {} })),
    volumes: (labels) =>
      done(
        Object.entries(this.state.volumes)
          .filter(([, own]) => has(own.labels, labels))
          .map(([name, own]) => ({ name, labels: own.labels, folder: "" })),
      ),
    removeVolume: (name) => {
      if (this.state.containers.some(({ mounts }) => Object.values(mounts).includes(name)))
        return done(false);
      delete this.state.volumes[name];
      return done(true);
    },
    readFiles: (id, path) => {
      const found = this.find(id);
      const [folder, name] = [posix.dirname(path), posix.basename(path)];
      const files = found?.mounts[folder] === undefined ? found?.files : this.filesAt(found, folder);
      const own =
        path === "/etc/passwd" ? "redis:x:999:999::/:\n" : files?.[files === found?.files ? path : name];
      if (own === undefined) return done(null);
      const pack = tar.pack();
      pack.entry({ name: posix.basename(path) }, own);
      pack.finalize();
      return done(pack as unknown as Readable);
    },
    writeFiles: async (id, folder, archive) => {
      const found = this.find(id);
      if (!found) return refused(404, `No such container: ${id}`);
      const files = this.filesAt(found, folder);
      await readEntries(
        Buffer.isBuffer(archive) ? Readable.from([archive]) : archive,
        async ({ name, type }, content) => {
          const bytes = await text(content);
          if (type === "file") files[folder === "/" ? posix.join("/", name) : name] = bytes;
          return true;
        },
      );
    },
    execute: (id, program) => {
      const found = this.find(id);
      return found?.running && !found.isLooping
        ? done({ exitCode: 0, stdout: execute(found, this.filesAt(found, "/data"), program), stderr: "" })
        : refused(409, `container ${id} is not running`);
    },
    pipe: (id, program) => {
      const found = this.find(id);
      return found?.running && !found.isLooping
        ? done(pipe(this.filesAt(found, "/data"), program))
        : refused(409, `container ${id} is not running`);
    },
    lastLines: () => done([]),
    imageId: (reference) => done(this.state.images[reference] ?? null),
    imageLabels: (id) => done(this.state.imageLabels[id] ?? {}),
    imageDeclares: () => done({ ports: 0, volumes: 0, bytes: 0 }),
    imageTags: (repository) =>
      done(Object.keys(this.state.images).filter((tag) => tag.startsWith(`${repository}:`))),
    tagImage: (id, repository, tag) => {
      const before = this.state.images[`${repository}:${tag}`];
      this.state.images[`${repository}:${tag}`] = id;
      if (before && !Object.values(this.state.images).includes(before)) this.state.nameless.push(before);
      return done(undefined);
    },
    removeImage: (reference) => {
      const id = this.state.images[reference];
      const isLast = Object.values(this.state.images).filter((one) => one === id).length < 2;
      if (!isLast || this.state.containers.every(({ image }) => image !== id))
        delete this.state.images[reference];
      return done(undefined);
    },
    removeUnnamedImages: (labels) => {
      const isUsed = (id: string) => this.state.containers.some(({ image }) => image === id);
      this.state.nameless = this.state.nameless.filter(
        (id) => isUsed(id) || !has(this.state.imageLabels[id] ?? {}, labels),
      );
      return done(undefined);
    },
    /** Only what is sent determines the image, unless its steps are rerun. */
    build: async ({ context, dockerfile, tag, labels, isFresh }) => {
      const hash = createHash("sha256").update(isFresh ? String(++this.state.made) : "");
      hash.update(dockerfile.text);
      const files = context === null ? [] : await received(context());
      hash.update(JSON.stringify(files.map(({ path, mode, text }) => [path, mode, text])));
      const [repository = "", name = ""] = tag.split(":");
      const id = `sha256:${hash.digest("hex")}`;
      this.state.imageLabels[id] = { ...labels, ...this.state.builtWith };
      await this.engine.tagImage(id, repository, name);
    },
    followLog: () => Readable.from([]),
    streamLog: () => Readable.from([]),
    readLog: () => done(Buffer.alloc(0)),
    firstExit: () => new Promise(() => undefined),
    ranOutOfMemory: () => done(false),
  } as Partial<Engine> as Engine;
}
