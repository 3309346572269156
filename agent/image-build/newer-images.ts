import { readFileSync, writeFileSync } from "node:fs";
import { tagOf } from "../docker/client.ts";
import type { Engine } from "../docker/engine.ts";
import { log } from "../log.ts";
import { isOurs } from "./image-provider.ts";

/** Base images that this host has, pulled again because their tags move: it is how updates of security reach what is built and started. */
export type NewerImages = {
  /** Whether a registry gave the image that is here, and no database needs it as it is. What the operator or the host made stays. */
  mayReplace(image: string): Promise<boolean>;
  /** @throws where no registry gives it: the image that is here, if there is one, stays */
  pull(image: string, signal: AbortSignal): Promise<void>;
  /** The same in the background, at most once a day, whatever comes of it. Nothing that runs is changed. */
  pullDaily(images: readonly string[]): Promise<void>;
};

const hourMs = 60 * 60_000;
const dayMs = 24 * hourMs;
/**
 * Databases that are there start again with these: a newer image of the same version may sort text otherwise, by another C library, and
 * PostgreSQL's indexes would be wrong.
 */
const ofDatabases = /^(?:postgres|mariadb|redis):/;
/** A registry may never end its answer. */
export const longestPullMs = 10 * 60_000;

type State = { pulledAt: Record<string, number>; superseded: Record<string, number> };

/** @param file of when each was pulled, and of the images that another one has superseded; may be lost */
export function openNewerImages(
  host: {
    engine: Pick<Engine, "imageId" | "pullImage" | "removeUnnamed" | "wasPulled">;
    /** The signal ends a pull that fills the disk. */
    receive(): Promise<{ signal: AbortSignal; end(): void }>;
    /** The operator's own, as not every engine says where an image is from. */
    localImages: readonly string[];
    file: string;
  },
  now: () => number = Date.now,
): NewerImages {
  const { engine, localImages, file } = host;
  const { pulledAt, superseded } = stateIn(file);
  let last = Promise.resolve();

  /** Not at once: a build may have found it under its name a moment ago. One that a container uses is tried again another day. */
  async function removeSuperseded(): Promise<void> {
    for (const [id, since] of Object.entries(superseded))
      if (now() - since >= hourMs && (await engine.removeUnnamed(id))) delete superseded[id];
  }

  async function pull(image: string, signal: AbortSignal): Promise<void> {
    const name = tagOf(image);
    pulledAt[name] = now();
    try {
      const before = await engine.imageId(name);
      // Without a tag, all of them would come.
      await engine.pullImage(name, null, signal);
      if (before !== null && (await engine.imageId(name)) !== before) superseded[before] = now();
      await removeSuperseded();
    } finally {
      write(file, { pulledAt, superseded });
    }
  }

  const isDue = (image: string): boolean => Math.abs(now() - (pulledAt[tagOf(image)] ?? -Infinity)) >= dayMs;

  const own = new Set(localImages.map(tagOf));
  const mayReplace = async (image: string): Promise<boolean> =>
    !ofDatabases.test(tagOf(image)) &&
    (isOurs(image) || !own.has(tagOf(image))) &&
    (await engine.wasPulled(image));

  async function pullIfDue(image: string): Promise<void> {
    if (!isDue(image) || !(await mayReplace(image))) return;
    const room = await host.receive();
    try {
      await pull(image, AbortSignal.any([room.signal, AbortSignal.timeout(longestPullMs)]));
    } finally {
      room.end();
    }
  }

  return {
    mayReplace,
    pull,
    async pullDaily(images) {
      for (const image of images)
        last = last.then(() =>
          pullIfDue(image).catch((error: unknown) =>
            log("info", "A base image was not pulled again today", { image, reason: String(error) }),
          ),
        );
      await last;
    },
  };
}

function stateIn(file: string): State {
  try {
    const { pulledAt, superseded } = JSON.parse(readFileSync(file, "utf8")) as Partial<State>;
    return { pulledAt: { ...pulledAt }, superseded: { ...superseded } };
  } catch {
    return { pulledAt: {}, superseded: {} };
  }
}

function write(file: string, state: State): void {
  try {
    writeFileSync(file, JSON.stringify(state), { mode: 0o600 });
  } catch {
    // A full disk: what is not known to have been pulled is pulled again.
  }
}
