import { basename, dirname, join } from "node:path";
import type { Engine } from "../docker/engine.ts";
import { siteLabels, volumeName } from "../docker/specs.ts";
import { JobError } from "../job.ts";

/** The directory of a site's volume on this host; null if there is none. */
export async function volumeFolder(engine: Engine, siteId: string, name: string): Promise<string | null> {
  const wanted = volumeName(siteId, name);
  const found = (await engine.volumes(siteLabels(siteId))).find((one) => one.name === wanted);
  return found?.folder ?? null;
}

/** Directories beside a volume's own, which no container sees and which are removed with the volume. @throws JobError */
export function besideOf(folder: string): { restored: string; replaced: string } {
  if (basename(folder) !== "_data")
    throw new JobError(
      "The host's engine keeps volumes in a way that Berth does not support: ask the operator.",
    );
  const parent = dirname(folder);
  return { restored: join(parent, "berth-restored"), replaced: join(parent, "berth-replaced") };
}
