import { mkdirSync, writeFileSync } from "node:fs";
import http from "node:http";
import type { Duplex } from "node:stream";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BuildFailed } from "../../agent/docker/buildkit.ts";
import type { Engine } from "../../agent/docker/engine.ts";
import { createEngine } from "../../agent/docker/client.ts";
import { leakyEngine, unfitReason } from "../../agent/docker/unfit.ts";
import { ownFolderOf } from "../../agent/docker/own-folder.ts";
import { buildImage } from "../../agent/sites/build-image.ts";
import type { Host } from "../../agent/host.ts";
import { deployArgs } from "../support/deploy-args.ts";
import { jobRun } from "../support/job-run.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** What Docker 29 answers, by path: API 1.52 and later, containerd's image store. */
let answers: Record<string, unknown>;
let folder: string;
let server: http.Server;
let engine: Engine;
const open = new Set<Duplex>();

beforeEach(async () => {
  folder = temporaryFolder();
  answers = {};
  server = http.createServer((request, response) => {
    request.resume();
    const answer = answers[(request.url ?? "").split("?")[0] ?? ""];
    response.setHeader("Content-Type", "application/json");
    if (answer === undefined) response.writeHead(404).end('{"message":"not found"}');
    else response.end(typeof answer === "string" ? answer : JSON.stringify(answer));
  });
  server.on("connection", (socket: Duplex) => void open.add(socket));
  server.on("upgrade", (_request, socket: Duplex) => {
    socket.on("error", () => undefined).resume();
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n");
  });
  const socketPath = join(folder, "engine.sock");
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  engine = createEngine({ socketPath });
});

afterEach(() => {
  for (const socket of open) socket.destroy();
  open.clear();
  server.close();
});

const id = "c0ffee".padEnd(64, "0");
const snapshot = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/57/fs";

/** The files of the kernel's about the container's first process. */
function proc(pid: number, cgroup: string, mounts: string): string {
  const place = join(folder, "root", "proc", String(pid));
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, "cgroup"), `0::/system.slice/docker-${cgroup}.scope\n`);
  writeFileSync(join(place, "mountinfo"), mounts);
  return join(folder, "root");
}

const mountsOf = (upper: string) =>
  [
    `1041 812 0:97 / / rw,relatime - overlay overlay rw,lowerdir=/lower/56/fs,upperdir=${upper},workdir=/work,uuid=on`,
    "1042 1041 0:101 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw",
    "1043 1041 0:102 / /data rw - overlay overlay rw,lowerdir=/other,upperdir=/other/fs,workdir=/w",
    "",
  ].join("\n");

describe("a container", () => {
  beforeEach(() => {
    answers[`/containers/${id}/json`] = {
      Id: id,
      Name: "/berth-site",
      Image: "sha256:1111",
      State: {
        Running: true,
        StartedAt: "2026-11-21T10:00:00.123456789Z",
        FinishedAt: "0001-01-01T00:00:00Z",
        ExitCode: 0,
        OOMKilled: false,
        Pid: 4711,
      },
      RestartCount: 0,
      Driver: "overlayfs",
      // No GraphDriver.
      Storage: { RootFS: { Snapshot: { Name: "overlayfs" } } },
      Mounts: [],
      Config: { Labels: { "berth.site": "s" }, User: "", Env: ["PORT=3000"] },
      HostConfig: { NanoCpus: 500_000_000 },
      // No addresses but the networks'.
      NetworkSettings: { Ports: {}, Networks: { "berth-acc": { IPAddress: "172.18.0.2" } } },
    };
  });

  it("is read", async () => {
    expect(await engine.inspectContainer(id)).toMatchObject({
      running: true,
      finishedAt: null,
      cpuMilli: 500,
      ownFolder: null,
      addresses: { "berth-acc": "172.18.0.2" },
    });
  });

  it("shows by its own mounts where it writes, as the engine does not say it", async () => {
    const container = (await engine.inspectContainer(id))!;
    const root = proc(4711, id, mountsOf(snapshot));
    expect(await ownFolderOf(container, root)).toBe(snapshot);
    expect(await ownFolderOf(container, proc(4711, id, mountsOf("/my\\040disk/fs")))).toBe("/my disk/fs");
  });

  it("that does not run, or whose number is another program's, shows nothing", async () => {
    const container = (await engine.inspectContainer(id))!;
    const root = proc(4711, "another", mountsOf(snapshot));
    expect(await ownFolderOf(container, root)).toBeNull();
    expect(await ownFolderOf({ ...container, pid: 4712 }, root)).toBeNull();
    expect(await ownFolderOf({ ...container, pid: 0 }, root)).toBeNull();
    expect(await ownFolderOf({ ...container, ownFolder: "/as/said" }, root)).toBe("/as/said");
  });
});

describe("an image", () => {
  const image = (name: string, identity?: object) => {
    answers[`/images/${name}/json`] = {
      Id: "sha256:2222",
      RepoTags: [`${name}:latest`],
      // Of every name, wherever the image came from.
      RepoDigests: [`${name}@sha256:2222`],
      Descriptor: { mediaType: "application/vnd.oci.image.index.v1+json", digest: "sha256:2222", size: 856 },
      ...(identity && { Identity: identity }),
    };
  };

  it("that was built or loaded on this host is one of its own", async () => {
    answers["/version"] = { ApiVersion: "1.53" };
    image("built", { Build: [{ Ref: "default/default/abc" }] });
    image("loaded");
    expect(await engine.wasPulled("built")).toBe(false);
    expect(await engine.wasPulled("loaded")).toBe(false);
  });

  it("that was pulled is none, nor one of which the engine cannot tell", async () => {
    answers["/version"] = { ApiVersion: "1.53" };
    image("pulled", { Pull: [{ Repository: "registry.example/pulled" }] });
    expect(await engine.wasPulled("pulled")).toBe(true);
    answers["/version"] = { ApiVersion: "1.52" };
    image("loaded");
    expect(await engine.wasPulled("loaded")).toBe(true);
  });

  it("of the operator's is found although a build has begun with it, after which the engine says that it was pulled", async () => {
    answers["/version"] = { ApiVersion: "1.55" };
    image("made-here", { Pull: [{ Repository: "docker.io/library/made-here" }] });
    expect(await engine.localImage("made-here")).toBe("sha256:2222");
  });

  it("is found by its name, with its tag and registry or without, and never by its id, which may be a tenant's", async () => {
    answers["/version"] = { ApiVersion: "1.53" };
    image("library-image");
    const found = answers["/images/library-image/json"];
    for (const name of [
      "2222",
      "sha256:2222",
      "22",
      "sha256:22",
      "library-image:old",
      "other/library-image",
    ]) {
      answers[`/images/${name}/json`] = found;
      expect(await engine.localImage(name), name).toBeNull();
    }
    for (const name of ["library-image:latest", "docker.io/library/library-image", "library/library-image"]) {
      answers[`/images/${name}/json`] = found;
      expect(await engine.localImage(name), name).toBe("sha256:2222");
    }
  });

  it("whose pull broke off is not taken for pulled", async () => {
    answers["/images/create"] =
      '{"status":"Pulling from library/a","id":"1"}\r\n{"errorDetail":{"message":"unexpected EOF"}}\r\n';
    await expect(engine.pullImage("a:1", null, new AbortController().signal)).rejects.toThrow(
      "unexpected EOF",
    );
  });
});

it("the build cache is read where the API keeps it, and where it was", async () => {
  const record = { Type: "exec.cachemount", Description: 'with id "a/"', Size: 1 };
  answers["/version"] = { ApiVersion: "1.55" };
  answers["/system/df"] = { BuildCacheUsage: { TotalCount: 1, Items: [record] } };
  expect(await engine.buildCache()).toEqual([record]);
  answers["/version"] = { ApiVersion: "1.44" };
  answers["/system/df"] = { BuildCache: [record] };
  expect(await engine.buildCache()).toEqual([record]);
  answers["/system/df"] = { BuildCacheUsage: {} };
  expect(await engine.buildCache()).toEqual([]);
});

const building = (onLine: (line: string, stream: string) => void) =>
  engine.build({
    context: null,
    dockerfile: { name: "Dockerfile", text: "" },
    tag: "a:1",
    labels: {},
    buildArgs: {},
    cacheNamespace: "n",
    secrets: new Map(),
    signal: new AbortController().signal,
    onLine,
  });

it("a build fails by the one error that the API will keep", async () => {
  answers["/build"] = '{"errorDetail":{"message":"process \\"/bin/sh -c false\\" did not complete"}}\r\n';
  await expect(building(() => undefined)).rejects.toThrow('process "/bin/sh -c false" did not complete');
});

// BuildKit's own messages, by their field's number (protobuf: a tag, a length, the bytes).
const number = (value: number): number[] =>
  value < 128 ? [value] : [(value & 127) | 128, ...number(value >> 7)];
const field = (id: number, bytes: Buffer) =>
  Buffer.concat([Buffer.from(number((id << 3) | 2)), Buffer.from(number(bytes.length)), bytes]);
const trace = (status: Buffer) =>
  `${JSON.stringify({ id: "moby.buildkit.trace", aux: status.toString("base64") })}\r\n`;
const digest = field(1, Buffer.from("sha256:1"));
const started = field(5, Buffer.alloc(0));
const prints = (text: string | Buffer) =>
  trace(field(3, Buffer.concat([digest, field(4, Buffer.from(text))])));

it("a line of a build that comes in pieces is whole, also where a character was cut in two", async () => {
  const bytes = Buffer.from("gründlich\n");
  answers["/build"] = [...bytes].map((byte) => prints(Buffer.of(byte))).join("") + prints("the end");
  const lines: string[] = [];
  await building((line) => void lines.push(line));
  expect(lines).toEqual(["gründlich", "the end"]);
});

it("a step of a build that took a second or more says how long, once", async () => {
  const time = (id: number, seconds: number, tenths: number) =>
    field(id, Buffer.from([8, ...number(seconds), 16, ...number(tenths * 1e8)]));
  const step = (...fields: Buffer[]) =>
    trace(field(1, Buffer.concat([digest, field(3, Buffer.from("[build 2/3] RUN npm ci")), ...fields])));
  const lines: string[] = [];
  const log = (line: string) => void lines.push(line);
  const done = step(time(5, 100, 2), time(6, 112, 5));
  answers["/build"] = step(time(5, 100, 2)) + done + done;
  await building(log);
  answers["/build"] = step(time(5, 100, 2), time(6, 100, 9));
  await building(log);
  expect(lines).toEqual(["[build 2/3] RUN npm ci", "[build 2/3] took 12.3 s", "[build 2/3] RUN npm ci"]);
});

it("a build that prints megabytes without an end of line takes no memory for them", async () => {
  answers["/build"] =
    trace(field(1, Buffer.concat([digest, started]))) +
    prints("x".repeat(100_000)).repeat(20) +
    prints(`\n${"y".repeat(100_000)}\n`).repeat(20) +
    trace(field(1, Buffer.concat([digest, started, field(7, Buffer.from("exit code: 1"))]))) +
    '{"errorDetail":{"message":"exit code: 1"}}\r\n';
  const lines: string[] = [];
  const failure: unknown = await building(
    (line, stream) => void (stream === "stdout" && lines.push(line)),
  ).catch((error: unknown) => error);
  expect(lines.map((line) => line.slice(0, 1)).filter(Boolean)).toEqual([
    "x",
    ...Array<string>(20).fill("y"),
  ]);
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(150_000);
  expect(failure).toBeInstanceOf(BuildFailed);
  expect((failure as BuildFailed).lastLines.join("").length).toBeLessThanOrEqual(21 * 2000);
});

it("a build that BuildKit itself saw run out of memory is said to have", async () => {
  const said = 'process "/bin/sh -c make" did not complete successfully: cannot allocate memory';
  const host = {
    workDirectory: folder,
    settings: { buildCaFile: null },
    isolation: { demand: () => Promise.resolve() },
    buildRoom: {
      memoryMb: 2048,
      demandDisk: () => Promise.resolve(),
      enter: () => Promise.resolve({ signal: new AbortController().signal, end: () => undefined }),
    },
    imageRepository: () => "berth-site/x",
    engine: {
      removeImage: () => Promise.resolve(),
      build: () => Promise.reject(new BuildFailed(said)),
    },
  } as unknown as Host;
  await expect(buildImage(host, deployArgs(), "a:1", jobRun())).rejects.toThrow(
    /^The build was killed, most likely because it used more than the 2048 MB/,
  );
});

describe("where images and what containers write are kept", () => {
  const info = { DockerRootDir: "/var/lib/docker", CgroupDriver: "systemd" };
  const snapshotter = { DriverStatus: [["driver-type", "io.containerd.snapshotter.v1"]] };
  const kept = async (changes: object) => {
    answers["/info"] = { ...info, ...changes };
    const { rootDirectory, imageDirectory } = await engine.facts();
    return [rootDirectory, imageDirectory];
  };
  const containerd = (address: string) => ({ Containerd: { Address: address } });

  it("is the engine's own folder, or containerd's", async () => {
    const hosts = containerd("/run/containerd/containerd.sock");
    const own = containerd("/var/run/docker/containerd/containerd.sock");
    expect(await kept({ ...snapshotter, ...hosts })).toEqual(["/var/lib/docker", "/var/lib/containerd"]);
    expect(await kept({ ...snapshotter, ...own })).toEqual(["/var/lib/docker", "/var/lib/docker"]);
    const overlay2 = { DriverStatus: [["Backing Filesystem", "extfs"]] };
    expect(await kept({ ...overlay2, ...hosts })).toEqual(["/var/lib/docker", "/var/lib/docker"]);
  });
});

describe("an engine that Berth does not work with", () => {
  const rights = ["name=seccomp,profile=builtin", "name=cgroupns"];
  const facts = (changes: object) => {
    answers["/info"] = { DockerRootDir: "/", SecurityOptions: rights, ...changes };
    return engine.facts();
  };

  it.each([
    ["rootless", /^Docker runs rootless on this host.*Install Docker as root/],
    ["userns", /^Docker remaps users on this host.*Remove "userns-remap" from/],
  ])("says so by its option name=%s, and the reason says what to do", async (name, told) => {
    expect(unfitReason(await facts({}))).toBeNull();
    expect(unfitReason(await facts({ SecurityOptions: null }))).toBeNull();
    expect(unfitReason(await facts({ SecurityOptions: [...rights, `name=${name}`] }))).toMatch(told);
  });

  it.each([
    ["18.09.1", true],
    ["20.10.24+dfsg1", true],
    ["24.0.9", true],
    ["25.0.1", true],
    ["25.0.2", false],
    ["25.1.0", false],
    ["26.1.5+dfsg1", false],
    ["29.0.0-rc.1", false],
    ["dev", false],
  ])("as tenants' builds get out of it is one before 25.0.2: %s", async (ServerVersion, isLeaky) => {
    const told = leakyEngine(await facts({ ServerVersion }));
    expect(told !== null).toBe(isLeaky);
    if (isLeaky) expect(told).toMatch(`Docker ${ServerVersion} on this host is old`);
  });

  it("for databases that are reached from outside is one whose rules are nftables'", async () => {
    const uses = async (Driver?: string) =>
      (await facts(Driver === undefined ? {} : { FirewallBackend: { Driver } })).usesNftables;
    const drivers = [undefined, "iptables", "iptables+firewalld", "nftables", "nftables+firewalld"];
    const found = [];
    for (const driver of drivers) found.push(await uses(driver));
    expect(found).toEqual([false, false, false, true, true]);
  });
});
