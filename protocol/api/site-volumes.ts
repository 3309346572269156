import * as z from "zod";
import { BackupSettings, BackupsFailing } from "./backups.ts";
import { text, Timestamp } from "./common.ts";

/** When a volume is backed up by itself; never unless its owner says so. */
export const VolumeBackups = z
  .object({ ...BackupSettings.shape, nextAt: Timestamp.nullable(), failing: BackupsFailing.nullable() })
  .meta({ id: "VolumeBackups" });
export type VolumeBackups = z.infer<typeof VolumeBackups>;
export const VolumePatch = z.strictObject({ backups: z.strictObject(BackupSettings.partial().shape) });
export type VolumePatch = z.infer<typeof VolumePatch>;
export const VolumeChanged = z
  .object({ name: z.string(), backups: VolumeBackups })
  .meta({ id: "VolumeChanged" });
export type VolumeChanged = z.infer<typeof VolumeChanged>;

export const VolumeRestore = z.strictObject({ backupId: text.min(1).max(100) });
export type VolumeRestore = z.infer<typeof VolumeRestore>;
export const VolumeRestoreAccepted = z
  .object({ name: z.string(), backupId: z.string(), status: z.literal("RESTORING") })
  .meta({ id: "VolumeRestoreAccepted" });
export type VolumeRestoreAccepted = z.infer<typeof VolumeRestoreAccepted>;

/** A folder stored for a site, mounted or detached. */
export const SiteVolume = z
  .object({
    name: z.string(),
    mountPath: z
      .string()
      .nullable()
      .describe(
        "The mount path in the version in service or the next deployment; null: detached, the data is only kept.",
      ),
    mounted: z.boolean().describe("Used by the version in service."),
    sizeMb: z
      .number()
      .nonnegative()
      .nullable()
      .describe("null: not created yet, or the host cannot measure it now."),
    backups: VolumeBackups,
    restoring: z.boolean().describe("A backup is being restored into it."),
    restoreError: z
      .string()
      .nullable()
      .describe("Why the last restore into it failed; its data is unchanged."),
  })
  .meta({ id: "SiteVolume" });
export type SiteVolume = z.infer<typeof SiteVolume>;

export const SiteVolumes = z.object({ data: z.array(SiteVolume) });
export type SiteVolumes = z.infer<typeof SiteVolumes>;

export const VolumeRemoved = z
  .object({ name: z.string(), removed: z.literal(true) })
  .meta({ id: "VolumeRemoved" });
export type VolumeRemoved = z.infer<typeof VolumeRemoved>;
