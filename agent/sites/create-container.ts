import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { promisify } from "node:util";
import type { RunSpec } from "../../protocol/agent/jobs.ts";
import type { ContainerSpec, VolumeSummary } from "../docker/engine.ts";
import { siteLabels, volumeName, volumesOf as namesIn } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import { onAccountNetwork } from "../isolation/account-network.ts";
import { log } from "../log.ts";
import { writersOf } from "./volumes.ts";

type Means = Pick<Host, "engine" | "agentId" | "buildRoom">;

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
  let ending: Promise<VolumeSummary[]> | undefined;
  const end = () => {
    ending = engine.unclaimedVolumes(since).then(async (nameless) => {
      const filled = [...nameless, ...own];
      await chattr("+i", filled);
      return filled;
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
    for (const volume of (await ending?.catch(() => undefined)) ?? []) await giveUp(host, volume, own);
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

/** An immutable file takes no more, not even from who has it open (chattr(1)). */
async function chattr(flag: "+i" | "-i", volumes: readonly VolumeSummary[]): Promise<void> {
  if (volumes.length === 0) return;
  const folders = volumes.map(({ folder }) => folder);
  await promisify(execFile)("chattr", ["-R", "-f", flag, ...folders]).catch((error: unknown) =>
    log("warn", "Not all files of these volumes have taken the attribute", { flag, folders, error }),
  );
}

/** What was copied until then goes. One that a container has after all stays. */
async function giveUp(
  { engine }: Means,
  volume: VolumeSummary,
  own: readonly VolumeSummary[],
): Promise<void> {
  await chattr("-i", [volume]);
  const isGone = await engine.removeVolume(volume.name).catch((error: unknown) => {
    log("error", "A volume that filled the disk was not removed", { name: volume.name, error });
    return false;
  });
  if (isGone && own.includes(volume)) await engine.ensureVolume(volume.name, volume.labels);
}
