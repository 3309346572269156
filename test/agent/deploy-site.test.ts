import net, { type AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { networkName } from "../../agent/docker/specs.ts";
import { deploySite } from "../../agent/handlers/deploy-site.ts";
import type { ContainerSpec } from "../../agent/docker/engine.ts";
import type { Host } from "../../agent/host.ts";
import type { Target } from "../../agent/ingress/ingress.ts";
import type { JobArgs } from "../../protocol/agent/jobs.ts";
import { formatId } from "../../protocol/ids.ts";
import { deployArgs } from "../support/deploy-args.ts";
import { jobRun } from "../support/job-run.ts";
import { runSpec } from "../support/run-spec.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { emptyDisk } from "../support/empty-disk.ts";

const id = <K extends "site" | "account" | "deployment">(kind: K, at = 1) =>
  formatId(kind, at, new Uint8Array(10));
const [old, next] = [id("deployment", 1), id("deployment", 2)];

/** What answers for the new version. */
let app: net.Server;
beforeAll(
  () => new Promise<void>((resolve) => void (app = net.createServer().listen(0, "127.0.0.1", resolve))),
);
afterAll(() => void app.close());

/** No other names have been told since. */
const newest = (_: string, { hostnames }: { hostnames: string[] }) => hostnames;

function rollback(): JobArgs<"site.deploy"> {
  return deployArgs({
    run: runSpec({ port: (app.address() as AddressInfo).port }),
    deploymentId: next,
    source: { type: "kept", deploymentId: old },
    kept: [
      {
        deploymentId: old,
        number: 1,
        commit: null,
        commitMessage: null,
        imageDigest: "i",
        imageId: "i",
        buildKey: null,
      },
    ],
  });
}

it("a version that serves is a success, and keeps its image, whatever goes wrong with the older ones", async () => {
  const removed: string[] = [];
  const afterwards: (() => Promise<void>)[] = [];
  let served: readonly Target[] = [];
  const engine = {
    imageId: () => Promise.resolve("i"),
    tagImage: () => Promise.resolve(),
    ensureNetwork: () => Promise.resolve(),
    createContainer: () => Promise.resolve("c1"),
    startContainer: () => Promise.resolve(),
    listContainers: () => Promise.resolve([]),
    inspectContainer: () =>
      Promise.resolve({
        id: "c1",
        running: true,
        labels: {},
        addresses: { [networkName(id("account"))]: "127.0.0.1" },
      }),
    firstExit: () => new Promise(() => undefined),
    imageLabels: () => Promise.resolve({}),
    imageTags: () => Promise.reject(new Error("engine down")),
    removeImage: (reference: string) => Promise.resolve(void removed.push(reference)),
  };
  const host = {
    engine,
    agentId: "agent",
    imageRepository: () => "berth-site/x",
    isolation: { demand: () => Promise.resolve() },
    buildRoom: emptyDisk(),
    ingress: {
      current: () => null,
      newest,
      lost: () => [],
      fallback: () => null,
      settle: () => Promise.resolve(),
      routeOnProbation: (_: string, _names: string[], targets: Target[]) =>
        Promise.resolve(void (served = targets)),
    },
    settings: { probationSeconds: 0 },
    retire: () => undefined,
    recall: () => Promise.resolve(true),
  } as unknown as Host;
  const job = jobRun({ afterwards: (work) => void afterwards.push(work) });
  expect(await deploySite(host, rollback(), job)).toMatchObject({ imageId: "i" });
  expect(served.map(({ containerId }) => containerId)).toEqual(["c1"]);
  const tidied = await Promise.allSettled(afterwards.map((work) => work()));
  expect(tidied).toMatchObject([{ status: "rejected", reason: { message: "engine down" } }]);
  expect(removed).toEqual([]);
});

it("a rollback on a host without the image makes it anew of what it was made of, and says so", async () => {
  const lines: string[] = [];
  const here = new Map<string, string>();
  const host = {
    engine: {
      imageId: (name: string) => Promise.resolve(here.get(name) ?? null),
      registryDigest: () => Promise.reject(new Error("manifest unknown")),
      localImage: () => Promise.resolve(null),
      pullImage: (name: string) => Promise.resolve(void here.set(name, "made anew")),
      imageDeclares: () => Promise.resolve({ ports: 1, volumes: 0, bytes: 300 }),
      tagImage: () => Promise.resolve(),
      removeContainer: () => Promise.resolve(),
      removeImage: () => Promise.resolve(),
      removeNetwork: () => Promise.resolve(),
    },
    buildRoom: {
      demandDisk: () => Promise.resolve(),
      receive: () => Promise.resolve({ signal: new AbortController().signal, end: () => undefined }),
    },
    settings: {},
    workDirectory: temporaryFolder(),
    imageRepository: () => "berth-site/x",
    ingress: { newest, park: () => Promise.resolve() },
  } as unknown as Host;
  const job = jobRun({ log: (text) => void lines.push(text) });
  const digest = `sha256:${"d".repeat(64)}`;
  const otherwise = { type: "image", reference: "registry.example/app:1", login: null, digest } as const;
  const args = { ...rollback(), parked: true };
  const back = (source: object) => deploySite(host, { ...args, source: { ...args.source, ...source } }, job);
  expect(await back({ otherwise })).toMatchObject({ imageId: "made anew", imageDigest: digest });
  expect(lines).toContain(
    "This host does not have the image of that deployment: it is pulled again by its digest.",
  );
  // What there was no step for is not in it.
  expect(lines).toContainEqual(expect.stringMatching(/^Built in [\d.]+ s\.$/));
  await expect(back({})).rejects.toThrow("no longer on the host");
});

it("of a stopped site that moves the image is made, and nothing is started", async () => {
  const parked: string[] = [];
  const host = {
    engine: { imageId: () => Promise.resolve("i"), tagImage: () => Promise.resolve() },
    imageRepository: () => "berth-site/x",
    ingress: { newest, park: (siteId: string) => Promise.resolve(void parked.push(siteId)) },
  } as unknown as Host;
  const args = { ...rollback(), parked: true };
  expect(await deploySite(host, args, jobRun())).toMatchObject({
    imageId: "i",
    parked: true,
    durations: { start: null, swap: null },
  });
  expect(parked).toEqual([args.run.siteId]);
});

it("an image that declares more than the engine can repeat in all of its lists is refused, and does not stay", async () => {
  const refusedFor = async (declared: object) => {
    const removed: string[] = [];
    const here = new Map<string, string>();
    const host = {
      // Nothing that makes or starts a container.
      engine: {
        imageId: (name: string) => Promise.resolve(here.get(name) ?? null),
        registryDigest: () => Promise.resolve("sha256:d"),
        pullImage: (name: string) => Promise.resolve(void here.set(name, "sha256:i")),
        imageDeclares: () => Promise.resolve({ ports: 1, volumes: 0, bytes: 300, ...declared }),
        tagImage: () => Promise.resolve(),
        removeContainer: () => Promise.resolve(),
        removeImage: (name: string) => Promise.resolve(void removed.push(name)),
        removeNetwork: () => Promise.resolve(),
      },
      buildRoom: {
        demandDisk: () => Promise.resolve(),
        receive: () => Promise.resolve({ signal: new AbortController().signal, end: () => undefined }),
      },
      imageRepository: () => "berth-site/x",
      workDirectory: temporaryFolder(),
    } as unknown as Host;
    const reference = `registry.example/app@sha256:${"d".repeat(64)}`;
    const source = { type: "image", reference, login: null } as const;
    const deployed = deploySite(host, { ...rollback(), source }, jobRun());
    const error: unknown = await deployed.catch((caught: unknown) => caught);
    expect(removed).toEqual([reference, `berth-site/x:${next}`]);
    return String(error);
  };
  expect(await refusedFor({ ports: 131_070 })).toContain(
    "exposes 131070 ports, and at most 1000 are possible",
  );
  expect(await refusedFor({ volumes: 101 })).toContain("declares 101 volumes, and at most 100 are possible");
  expect(await refusedFor({ bytes: 20_000_000 })).toContain("are larger than 256 KB");
});

it("a private image that the engine has under its registry's digest is kept under another one, and under no other", async () => {
  const digest = `sha256:${"d".repeat(64)}`;
  const login = { username: "robot", password: "s3cret" };
  const deployed = async (source: object, idHere: string, fails = false) => {
    const here = new Map<string, string>();
    const containers = new Map<string, ContainerSpec>();
    const gone: string[] = [];
    const host = {
      agentId: "agent",
      engine: {
        imageId: (name: string) => Promise.resolve(here.get(name) ?? null),
        registryDigest: () => Promise.resolve(digest),
        pullImage: (name: string) => Promise.resolve(void here.set(name, idHere)),
        imageDeclares: () => Promise.resolve({ ports: 0, volumes: 0, bytes: 0 }),
        tagImage: (image: string, repository: string, tag: string) =>
          Promise.resolve(void here.set(`${repository}:${tag}`, image)),
        removeImage: (name: string) => Promise.resolve(void here.delete(name)),
        removeNetwork: () => Promise.resolve(),
        createContainer: (spec: ContainerSpec) => {
          containers.set("c", spec);
          return Promise.resolve("c");
        },
        removeContainer: (name: string) => Promise.resolve(void containers.delete(name)),
        commitContainer: (name: string, repository: string, tag: string) => {
          expect(containers.get(name)).toMatchObject({ Image: digest, Labels: { "berth.site": "" } });
          if (fails) return Promise.reject(new Error("engine down"));
          here.set(`${repository}:${tag}`, "made");
          return Promise.resolve("made");
        },
        removeUnnamed: (image: string) => Promise.resolve(gone.push(image) > 0),
      },
      buildRoom: emptyDisk(),
      imageRepository: () => "berth-site/x",
      workDirectory: temporaryFolder(),
      ingress: { newest, park: () => Promise.resolve() },
    } as unknown as Host;
    const image = { type: "image" as const, reference: "registry.example/app:1", login, ...source };
    const made = await deploySite(host, { ...rollback(), parked: true, source: image }, jobRun()).catch(
      (error: unknown) => String(error),
    );
    expect([...containers]).toEqual([]);
    return { made, gone, names: [...here] };
  };
  const name = `berth-site/x:${next}`;
  expect(await deployed({}, digest)).toEqual({
    made: expect.objectContaining({ imageDigest: digest, imageId: "made" }),
    gone: [digest],
    names: [[name, "made"]],
  });
  expect(await deployed({}, digest, true)).toMatchObject({ made: "Error: engine down", names: [] });
  // Anybody's, and that of an engine that has ids of its own.
  for (const [source, id] of [
    [{ login: null }, digest],
    [{}, "sha256:e"],
  ] as const)
    expect(await deployed(source, id)).toMatchObject({ made: { imageId: id }, names: [[name, id]] });
});
