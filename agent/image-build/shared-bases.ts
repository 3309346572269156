import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Engine } from "../docker/engine.ts";
import { label } from "../docker/labels.ts";
import { log } from "../log.ts";
import type { JobRun } from "../job.ts";
import { stepsOf, type SharedBase } from "./dockerfile/shared.ts";
import { orAborted } from "./or-aborted.ts";
import { caSecretId, trustCa } from "./trust-ca.ts";

type Means = {
  engine: Pick<Engine, "build" | "imageId" | "imageTags" | "removeImage">;
  /** Waits until something may be built; the signal ends it. */
  enter(): Promise<{ signal: AbortSignal; end(): void }>;
  /** Of a host that no name resolves to: where the image is gone, nobody else's is pulled. */
  repository: string;
  buildCaFile: string | null;
};
type Run = Pick<JobRun, "signal" | "log">;

export type SharedBases = (base: SharedBase, run: Run) => Promise<string | null>;

const mostMinutes = 15;
/** One that could not be made is not tried again at once: each deployment would wait for it. */
const pauseMs = 10 * 60_000;
/** So long after its name was given, no build begins with it any more. */
const lentMs = 60 * 60_000;
const hash = (...parts: string[]): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 24);

/**
 * Images that a host makes once, of a base image and steps of ours alone: no tenant's variable, secret or cache is in them, and
 * builds only read them. Named by their content, also the base image's, so that a newer one is followed by a new image. One is
 * made at a time. The name is null where none can be had: then the steps are run in the build itself.
 */
export function openSharedBases(host: Means, now: () => number = Date.now): SharedBases {
  const { engine, repository, buildCaFile } = host;
  const making = new Map<string, Promise<void>>();
  const failed = new Map<string, number>();
  const lentUntil = new Map<string, number>();
  let last = Promise.resolve();

  async function make(
    tag: string,
    prefix: string,
    { image }: SharedBase,
    steps: string[],
    onLine: Run["log"],
  ) {
    const room = await host.enter();
    try {
      const text = [`FROM ${image}`, ...steps, ""].join("\n");
      await engine.build({
        context: null,
        dockerfile: { name: "Dockerfile", text: buildCaFile === null ? text : trustCa(text) },
        tag: `${repository}:${tag}`,
        labels: { [label.managed]: "true" },
        buildArgs: {},
        cacheNamespace: repository,
        secrets: buildCaFile === null ? new Map() : new Map([[caSecretId, await readFile(buildCaFile)]]),
        signal: AbortSignal.any([room.signal, AbortSignal.timeout(mostMinutes * 60_000)]),
        onLine,
      });
    } finally {
      room.end();
    }
    await removeOlder(prefix, tag);
  }

  const lent = (name: string): string => {
    lentUntil.set(name, now() + lentMs);
    return name;
  };

  /** A build that was given the older one's name may not have begun. */
  async function removeOlder(prefix: string, tag: string): Promise<void> {
    const isOlder = (name: string) =>
      name.startsWith(`${repository}:${prefix}`) && name !== `${repository}:${tag}`;
    for (const old of (await engine.imageTags(repository)).filter(isOlder)) {
      if ((lentUntil.get(old) ?? 0) > now()) continue;
      await engine.removeImage(old);
      lentUntil.delete(old);
    }
  }

  return async (base, run) => {
    const steps = stepsOf(base.kind);
    const imageId = await engine.imageId(base.image);
    if (steps === null || imageId === null) return null;
    const prefix = `${base.kind}-${hash(base.image)}-`;
    const tag = `${prefix}${hash(imageId, ...steps)}`;
    const name = `${repository}:${tag}`;
    if ((await engine.imageId(name)) !== null) {
      await removeOlder(prefix, tag);
      return lent(name);
    }
    if ((failed.get(tag) ?? 0) > now()) return null;
    let made = making.get(tag);
    run.log(
      made === undefined
        ? `Making what all sites on this host share of ${base.image} (${base.kind}); this happens once.`
        : `This host is making what all sites share of ${base.image} (${base.kind}); waiting for it.`,
    );
    if (made === undefined) {
      made = last.then(() => make(tag, prefix, base, steps, run.log));
      making.set(tag, made);
      const forget = () => making.delete(tag);
      made.then(forget, forget);
      last = made.catch(() => undefined);
    }
    try {
      await orAborted(made, run.signal);
      return lent(name);
    } catch (error) {
      run.signal.throwIfAborted();
      failed.set(tag, now() + pauseMs);
      log("warn", "A base image that all sites share could not be made", {
        base: base.kind,
        error: String(error),
      });
      run.log("It could not be made: its steps are part of this build, where that needs them.");
      return null;
    }
  };
}
