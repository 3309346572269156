import { basename, dirname } from "node:path";
import { buffer } from "node:stream/consumers";
import tarStream, { type Headers } from "tar-stream";
import type { RunSpec } from "../../protocol/agent/jobs.ts";
import { fileIn, readEntries } from "../docker/files-in.ts";
import { ownerOf } from "../docker/image-user.ts";
import { commandLabels, siteLabels, volumeLabels, volumeName } from "../docker/specs.ts";
import type { ContainerState, ContainerSummary, Engine } from "../docker/engine.ts";
import type { Host } from "../host.ts";
import { JobError, type JobRun } from "../job.ts";

/** The volumes of a release are there, with what they held before. @throws JobError where one that held data is gone */
export async function ensureVolumes(host: Host, run: RunSpec): Promise<void> {
  await demandHeld(host, run);
  for (const { name } of run.volumes)
    await host.engine.ensureVolume(volumeName(run.siteId, name), volumeLabels(host.agentId, run, name));
}

/** The running containers that can write to a site's volumes: its own and those of its commands. */
export async function writersOf(engine: Engine, siteId: string): Promise<ContainerSummary[]> {
  const all = [
    ...(await engine.listContainers(siteLabels(siteId))),
    ...(await engine.listContainers(commandLabels(siteId))),
  ];
  return all.filter(({ running }) => running);
}

/** An app that finds nothing begins anew, and whoever sees it must think that nothing is lost. */
async function demandHeld({ engine }: Host, { siteId, heldVolumes = [] }: RunSpec): Promise<void> {
  if (heldVolumes.length === 0) return;
  const there = new Set((await engine.volumes(siteLabels(siteId))).map(({ name }) => name));
  const gone = heldVolumes.find((name) => !there.has(volumeName(siteId, name)));
  if (gone !== undefined)
    throw new JobError(
      `The data of the volume ${gone} is not on this host: ask the operator to bring it back. To continue without it, deploy the site without the volume, remove the volume, then add it again.`,
    );
}

/**
 * A volume that nobody wrote to yet belongs to whom the image runs as. Where the image has the folder, the engine has
 * copied it with its owners; otherwise it is root's and empty. Done through the container that is to run, before it does:
 * nothing runs as root for it, and images without a shell can have it too.
 */
export async function giveVolumes(
  { engine }: Host,
  run: RunSpec,
  container: ContainerState,
  job: JobRun,
): Promise<void> {
  if (run.volumes.length === 0 || container.running || /^(?:|0|root)(?::|$)/.test(container.user)) return;
  const owner = ownerOf(
    container.user,
    await fileIn(engine, container.id, "/etc/passwd"),
    await fileIn(engine, container.id, "/etc/group"),
  );
  for (const { name, mountPath } of run.volumes) {
    const folder = await untouchedFolder(engine, container.id, mountPath);
    if (!folder) continue;
    if (!owner) {
      job.log(`The image has no user ${container.user}: the volume ${name} belongs to root.`);
      continue;
    }
    const tar = tarStream.pack();
    tar.entry({ name: `${basename(mountPath)}/`, type: "directory", mode: folder.mode ?? 0o755, ...owner });
    tar.finalize();
    await engine.writeFiles(container.id, dirname(mountPath), await buffer(tar));
  }
}

/** The folder itself, when root owns it and nothing is in it. */
async function untouchedFolder(engine: Engine, id: string, path: string): Promise<Headers | null> {
  const files = await engine.readFiles(id, path);
  const entries: Headers[] = [];
  if (files)
    await readEntries(files, async (header) => {
      entries.push(header);
      return Promise.resolve(entries.length < 2);
    });
  const [folder] = entries;
  return folder?.type === "directory" && folder.uid === 0 && entries.length === 1 ? folder : null;
}
