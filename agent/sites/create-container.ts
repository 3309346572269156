import { readdir } from "node:fs/promises";
import type { RunSpec } from "../../protocol/agent/jobs.ts";
import type { ContainerSpec, VolumeSummary } from "../docker/engine.ts";
import { siteLabels, volumeName, volumesOf as namesIn } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import { onAccountNetwork } from "../isolation/account-network.ts";
import { chattr, undoneAfter } from "./left-over.ts";
import { writersOf } from "./volumes.ts";

type Means = Pick<Host, "engine" | "agentId" | "buildRoom" | "workDirectory">;

/** @throws JobError */
export const createContainer = (
  host: Means,
  run: Pick<RunSpec, "siteId" | "accountId" | "volumes">,
  spec: ContainerSpec,
  keepContainerIds: readonly string[] = [],
): Promise<string> =>
  onAccountNetwork(host, run.accountId, () => createWithin(host, run, spec, keepContainerIds));

/**
 * Creates a container of a tenant's image. Into each new volume the engine copies what the image has there, holes and hard links as
 * whole files, without any limit, and for as long as that takes: if it fills the disk, it is made to fail.
 * @throws JobError
 */
export async function createWithin(
  host: Means,
  run: Pick<RunSpec, "siteId" | "volumes">,
  spec: ContainerSpec,
  keepContainerIds: readonly string[] = [],
): Promise<string> {
  const { engine } = host;
  const { own, used } = await volumesOf(host, run);
  const since = new Date();
  const room = await host.buildRoom.receive("volumes");
  const { promise: made, resolve: isMade } = Promise.withResolvers<void>();
  let ending: Promise<void> | undefined;
  const end = () => {
    ending = engine.unclaimedVolumes(since).then((nameless) => {
      const volumes = [...nameless, ...own];
      return undoneAfter(host, { kind: "volumes", volumes, own: own.map(({ name }) => name) }, async () => {
        await chattr("+i", volumes);
        await made;
      });
    });
    ending.catch(() => undefined);
  };
  room.signal.addEventListener("abort", end, { once: true });
  try {
    return await engine.createContainer(withoutCopies(spec, used), keepContainerIds);
  } catch (error) {
    room.signal.throwIfAborted();
    throw error;
  } finally {
    room.end();
    // It may come in this very moment, and nobody would take the attribute away.
    room.signal.removeEventListener("abort", end);
    isMade();
    await ending?.catch(() => undefined);
  }
}

/** Of a site's volumes those that only the engine writes to, and that are empty; and those that a container writes to. */
async function volumesOf(
  { engine }: Means,
  { siteId, volumes }: Pick<RunSpec, "siteId" | "volumes">,
): Promise<{ own: VolumeSummary[]; used: string[] }> {
  const [own, used]: [VolumeSummary[], string[]] = [[], []];
  if (volumes.length === 0) return { own, used };
  const all = await engine.volumes(siteLabels(siteId));
  const written = (await writersOf(engine, siteId)).flatMap(({ labels }) => namesIn(labels));
  for (const { name } of volumes) {
    const found = all.find((one) => one.name === volumeName(siteId, name));
    if (written.includes(name)) used.push(volumeName(siteId, name));
    else if (found && (await readdir(found.folder).catch(() => null))?.length === 0) own.push(found);
  }
  return { own, used };
}

/** What a container writes to, the engine leaves alone: nobody could end its copying there without ending the container's. */
function withoutCopies(spec: ContainerSpec, used: readonly string[]): ContainerSpec {
  const { Mounts } = spec.HostConfig ?? {};
  if (!Mounts || used.length === 0) return spec;
  const uncopied = Mounts.map((mount) =>
    used.includes(mount.Source) ? { ...mount, VolumeOptions: { NoCopy: true } } : mount,
  );
  return { ...spec, HostConfig: { ...spec.HostConfig, Mounts: uncopied as typeof Mounts } };
}
