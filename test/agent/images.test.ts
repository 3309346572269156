import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { buildKeyOf } from "../../agent/image-build/build-key.ts";
import type { Engine } from "../../agent/docker/engine.ts";
import { keptImage, unchangedImage } from "../../agent/sites/kept-image.ts";
import { pullImage } from "../../agent/sites/pull-image.ts";
import { undoLeftOvers } from "../../agent/sites/left-over.ts";
import type { Host } from "../../agent/host.ts";
import { JobError, type JobRun } from "../../agent/job.ts";
import type { JobArgs, KeptDeployment, Source } from "../../protocol/agent/jobs.ts";
import { formatId } from "../../protocol/ids.ts";
import { deployArgs as args } from "../support/deploy-args.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

type Args = JobArgs<"site.deploy">;
const id = <K extends "site" | "account" | "deployment">(kind: K, at = 1) =>
  formatId(kind, at, new Uint8Array(10));
const digest = (letter: string) => `sha256:${letter.repeat(64)}`;

const withEnv = (...env: Args["run"]["env"]) => args({ run: { ...args().run, env } });

const keptOf = (number: number, buildKey: string | null): KeptDeployment => ({
  deploymentId: id("deployment", number),
  number,
  commit: null,
  commitMessage: null,
  imageDigest: digest(`${number}`),
  imageId: digest(`${number}`),
  buildKey,
});

/** An engine with these images by name, and a registry with these digests by reference. */
function hostWith(
  images: Record<string, string>,
  registry: Record<string, string> | Error = {},
  localImages = Object.keys(images),
) {
  const here = new Map(Object.entries(images));
  const lines: string[] = [];
  const asked: unknown[] = [];
  const engine: Partial<Engine> = {
    imageId: (name) => Promise.resolve(here.get(name) ?? null),
    localImage: (name) => Promise.resolve(here.get(name) ?? null),
    tagImage: (image, repository, tag) => Promise.resolve(void here.set(`${repository}:${tag}`, image)),
    removeImage: (name) => Promise.resolve(void here.delete(name)),
    registryDigest: (reference, login) => {
      asked.push(login);
      if (registry instanceof Error) return Promise.reject(registry);
      const found = registry[reference];
      return found === undefined
        ? Promise.reject(new Error("manifest unknown: manifest unknown"))
        : Promise.resolve(found);
    },
    pullImage: (pinned, login) => {
      asked.push(login);
      here.set(pinned, digest("e"));
      return Promise.resolve();
    },
  };
  const full = new AbortController();
  const buildRoom = { receive: () => Promise.resolve({ signal: full.signal, end: () => undefined }) };
  const host = {
    engine,
    buildRoom,
    imageRepository: () => "berth-site/x",
    settings: { localImages },
    workDirectory: temporaryFolder(),
  } as unknown as Host;
  const job = {
    jobId: "job",
    signal: new AbortController().signal,
    log: (text: string) => void lines.push(text),
    phase: () => undefined,
  } as Partial<JobRun> as JobRun;
  return { host, job, lines, here, asked, full };
}

describe("what goes into a build", () => {
  const key = (input: Args, commit: string | null = null, secret = "key") =>
    buildKeyOf(input, commit, secret);
  const plain = { key: "A", value: "1", scope: "both", secret: false } as const;
  const other = { key: "B", value: "2", scope: "build", secret: true } as const;

  it("is the same whatever only its running needs, and in whatever order its variables come", () => {
    const same = key(args());
    expect(key(withEnv({ ...plain, scope: "runtime" }))).toBe(same);
    expect(
      key(args({ run: { ...args().run, port: 1, healthCheckPath: "/" }, deploymentId: id("deployment") })),
    ).toBe(same);
    expect(key(withEnv(plain, other))).toBe(key(withEnv(other, plain)));
  });

  it("is another one for any change of it, and on another host", () => {
    const git = (address: string, branch: string | null): Args =>
      args({ source: { type: "git", address, branch, token: null } });
    const keys = [
      key(args()),
      key(args(), null, "other host"),
      key(args({ source: { type: "dockerfile", text: "FROM other\n" } })),
      key(git("a.example/b/c", null), "1"),
      key(git("a.example/b/c", null), "2"),
      key(git("a.example/b/d", null), "1"),
      key(args({ rootDir: "x" })),
      key(args({ dockerfilePath: "x" })),
      key(args({ buildCommand: "x" })),
      key(args({ run: { ...args().run, startCommand: "x" } })),
      key(args({ releaseCommand: "x" })),
      key(withEnv(plain)),
      key(withEnv({ ...plain, value: "2" })),
      key(withEnv({ ...plain, secret: true })),
      key(withEnv(other)),
    ];
    expect(new Set(keys).size).toBe(keys.length);
    expect(key(args({ releaseCommand: null }))).toBe(key(args()));
    // A control plane of before tells it only where it is run.
    const release = { command: "x", timeoutSeconds: 60 };
    expect(key(args({ release }))).toBe(key(args({ releaseCommand: "x" })));
    expect(key(args({ release, releaseCommand: null }))).toBe(key(args()));
    expect(key(git("a.example/b/c", "main"), "1")).toBe(key(git("a.example/b/c", null), "1"));
  });
});

describe("an image that is kept", () => {
  const same = keptOf(2, buildKeyOf(args(), null, "berth-site/x"));
  const names = { [`berth-site/x:${same.deploymentId}`]: same.imageId };

  it("is used where a build would make it again", async () => {
    const { host, job, lines } = hostWith(names);
    const kept = [keptOf(3, "other"), same];
    expect(await unchangedImage(host, args({ kept }), job)).toMatchObject({
      imageId: same.imageId,
      buildKey: same.buildKey,
      buildMs: null,
    });
    expect(lines).toEqual(["Nothing to build has changed: using the image of deployment 2."]);
  });

  it("is used whatever the release command is by now, where the owner's own Dockerfile made it", async () => {
    const { host, job } = hostWith(names);
    const own = { ...same, buildKey: buildKeyOf(args(), null, "berth-site/x", false) };
    const used = (kept: KeptDeployment) =>
      unchangedImage(host, args({ kept: [kept], releaseCommand: "x" }), job);
    expect(await used(own)).toMatchObject({ imageId: same.imageId, buildKey: own.buildKey });
    expect(await used(same)).toBeNull();
  });

  it("is not used when a rebuild is asked for, something changed, or the host's is another", async () => {
    const { host, job } = hostWith(names);
    const none = (input: Args, on = host) => expect(unchangedImage(on, input, job)).resolves.toBeNull();
    await none(args({ kept: [same], rebuild: true }));
    await none(args({ kept: [same], buildCommand: "make" }));
    await none(args({ kept: [keptOf(2, null)] }));
    await none(args({ kept: [same] }), hostWith({}).host);
    await none(args({ kept: [{ ...same, imageId: digest("f") }] }));
  });

  it("is brought back exactly, or not at all", async () => {
    const { host, job } = hostWith(names);
    const back = (kept: KeptDeployment[]) => keptImage(host, args({ kept }), same.deploymentId, job);
    expect(await back([same])).toMatchObject({ imageId: same.imageId, cloneMs: null, buildMs: null });
    for (const kept of [[], [{ ...same, imageId: digest("f") }]]) expect(await back(kept)).toBeNull();
  });

  it("is that of the commit that is named, whatever the branch has by now", async () => {
    const commit = "a".repeat(40);
    const source = { type: "git", address: "git.example/o/r", branch: null, token: null, commit } as const;
    const kept = { ...same, buildKey: buildKeyOf(args({ source }), commit, "berth-site/x") };
    const { host, job } = hostWith(names);
    expect(await unchangedImage(host, args({ source, kept: [kept] }), job)).toMatchObject({
      imageId: same.imageId,
    });
    const other = { ...kept, buildKey: buildKeyOf(args({ source }), "b".repeat(40), "berth-site/x") };
    expect(await unchangedImage(host, args({ source, kept: [other] }), job)).toBeNull();
  });
});

describe("an image of a registry", () => {
  const login = { username: "robot", password: "s3cret" };
  const reference = "registry.example:5000/app:1";
  const source = (changes: object = {}): Extract<Source, { type: "image" }> => ({
    type: "image",
    reference,
    login,
    ...changes,
  });
  const pull = ({ host, job }: ReturnType<typeof hostWith>, from = source()) =>
    pullImage(host, args({ source: from }), from, job);

  it("is pinned by the registry's digest, pulled with the login, and left under no public name", async () => {
    const on = hostWith({}, { [reference]: digest("d") });
    expect(await pull(on)).toMatchObject({ imageDigest: digest("d"), imageId: digest("e"), buildKey: null });
    expect(on.asked).toEqual([login, login]);
    expect([...on.here]).toEqual([[`berth-site/x:${args().deploymentId}`, digest("e")]]);
    expect(on.lines.join()).not.toContain(login.password);
  });

  it("that the engine cannot describe is left under no public name either", async () => {
    const place = hostWith({}, { [reference]: digest("d") });
    place.host.engine.imageId = (name) =>
      place.here.has(name) ? Promise.reject(new Error("longer than 128 MB")) : Promise.resolve(null);
    await expect(pull(place)).rejects.toThrow("longer than 128 MB");
    expect([...place.here]).toEqual([]);
  });

  it("that an agent was killed with is left under no public name by the next one", async () => {
    const on = hostWith({}, { [reference]: digest("d") });
    const tagging = Promise.withResolvers<void>();
    on.host.engine.tagImage = () => {
      tagging.resolve();
      return new Promise(() => undefined);
    };
    void pull(on);
    await tagging.promise;
    expect([...on.here.values()]).toEqual([digest("e")]);
    await undoLeftOvers(on.host);
    expect([...on.here]).toEqual([]);
    expect(readdirSync(on.host.workDirectory)).toEqual([]);
  });

  it("that fills the host's disk is not pulled to its end", async () => {
    const on = hostWith({}, { [reference]: digest("d") });
    on.host.engine.pullImage = (_pinned, _login, signal) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(new Error("aborted")), { once: true });
        on.full.abort(new JobError("The pull was ended because this host ran out of free disk."));
      });
    await expect(pull(on)).rejects.toThrow(/ran out of free disk/);
  }, 3000);

  it("named by digest is that one", async () => {
    const named = source({ reference: `registry.example:5000/app:1@${digest("a")}` });
    const on = hostWith({}, { [named.reference]: digest("a") });
    expect(await pull(on, named)).toMatchObject({ imageDigest: digest("a") });
  });

  it("named by digest is asked of its registry, as the engine gives it to anybody if it holds it for another tenant", async () => {
    const named = source({ reference: `registry.example:5000/app@${digest("a")}`, login: null });
    const on = hostWith({}, new Error("no basic auth credentials"));
    await expect(pull(on, named)).rejects.toThrow(/is private, or it does not exist/);
    expect([...on.here]).toEqual([]);
  });

  it("that a site moves with is the one it had, whatever the name stands for by now", async () => {
    const on = hostWith({}, { [reference]: digest("d") });
    expect(await pull(on, source({ digest: digest("a") }))).toMatchObject({ imageDigest: digest("a") });
  });

  it("that a site moves or is rolled back with is never another one of its name", async () => {
    const from = source({ login: null, digest: digest("a") });
    const away = new Error("dial tcp: lookup registry.example: no such host");
    const local = hostWith({ [reference]: digest("a") }, away);
    expect(await pull(local, from)).toMatchObject({ imageId: digest("a") });
    // The name leads nowhere any more, the digest does.
    for (const said of [{}, away])
      expect(await pull(hostWith({ [reference]: digest("c") }, said), from)).toMatchObject({
        imageDigest: digest("a"),
        imageId: digest("e"),
      });
  });

  it("that was made on this host is nobody's but the operator's, unless the operator names it", async () => {
    const away = new Error("dial tcp: lookup registry.example: no such host");
    for (const named of [[], [`${reference}0`, "registry.example:5000/app", "registry.example:5000/app:*"]])
      await expect(
        pull(hostWith({ [reference]: digest("c") }, away, named), source({ login: null })),
      ).rejects.toThrow(/could not be reached/);
    const image = source({ login: null, reference: "app" });
    expect(
      await pull(hostWith({ app: digest("c") }, away, ["docker.io/library/app:latest"]), image),
    ).toMatchObject({
      imageId: digest("c"),
    });
  });

  it("that was made on this host is used where no registry answers, but never for a login", async () => {
    const away = new Error("dial tcp: lookup registry.example: no such host");
    const on = hostWith({ [reference]: digest("c") }, away);
    expect(await pull(on, source({ login: null }))).toMatchObject({ imageId: digest("c") });
    await expect(pull(hostWith({ [reference]: digest("c") }, away))).rejects.toThrow(/could not be reached/);
  });

  it.each([
    ["unauthorized: authentication required", login, /robot: check registryUsername and registryPassword/],
    ["no basic auth credentials", null, /set registryUsername and registryPassword/],
    ["manifest unknown: manifest unknown", login, /does not exist/],
    ["connect: connection refused", null, /could not be reached/],
    [
      "no matching manifest for linux/amd64 in the manifest list entries",
      null,
      /not made for this host's processor: build it for linux\/\w+/,
    ],
    [
      "toomanyrequests: You have reached your pull rate limit. You may increase the limit by authenticating and upgrading",
      null,
      /accepts no more requests from this host for now/,
    ],
    ["write /var/lib/docker/tmp/GetImageBlob1: no space left on device", null, /too little free disk/],
  ])("that cannot be had says why: %s", async (said, given, reason) => {
    await expect(pull(hostWith({}, new Error(said)), source({ login: given }))).rejects.toThrow(reason);
  });
});
