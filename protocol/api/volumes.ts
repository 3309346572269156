import * as z from "zod";

export const maxReplicas = 10;
export const maxVolumes = 5;
/** The minimum share of the pack's memory per replica. */
export const minReplicaMb = 64;

export const VolumeName = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, "1–63 of a–z, 0–9 and -, not at the ends");

/** Folders that a container depends on or must not change, including everything below them. */
const systemFolders = (
  "/bin /boot /dev /etc /lib /lib32 /lib64 /libx32 /proc /run /sbin /sys " +
  "/usr/bin /usr/lib /usr/sbin /var/run"
).split(" ");
/** Only these folders themselves, not their subfolders. */
const roots = ["/", "/usr", "/usr/local", "/usr/local/bin", "/usr/local/lib", "/var"];

const isSystemFolder = (path: string): boolean =>
  roots.includes(path) || systemFolders.some((one) => path === one || path.startsWith(`${one}/`));

/** An absolute path in the container, without `.`, `..`, empty segments or characters that need quoting. */
export const MountPath = z
  .string()
  .max(200)
  .regex(
    /^(\/(?!\.{1,2}(\/|$))[A-Za-z0-9_.@+-]+)+$/,
    "an absolute path such as /data, without . or .. and without / at the end",
  )
  .refine((path) => !isSystemFolder(path), "must not be a system folder; use one such as /data");

export const Volume = z.strictObject({ name: VolumeName, mountPath: MountPath }).meta({ id: "Volume" });
export type Volume = z.infer<typeof Volume>;

const differs = (volumes: Volume[], key: keyof Volume) =>
  new Set(volumes.map((volume) => volume[key])).size === volumes.length;

/** Folders that survive deployments; all replicas share them. */
export const Volumes = z
  .array(Volume)
  .max(maxVolumes)
  .refine((volumes) => differs(volumes, "name"), "each name once")
  .refine((volumes) => differs(volumes, "mountPath"), "each mountPath once");

export const Replicas = z.number().int().min(1).max(maxReplicas);

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
    mounted: z.boolean().describe("The version in service uses it."),
    sizeMb: z
      .number()
      .nonnegative()
      .nullable()
      .describe("null: not created yet, or the host cannot measure it now."),
  })
  .meta({ id: "SiteVolume" });
export type SiteVolume = z.infer<typeof SiteVolume>;

export const SiteVolumes = z.object({ data: z.array(SiteVolume) });
export type SiteVolumes = z.infer<typeof SiteVolumes>;

export const VolumeRemoved = z
  .object({ name: z.string(), removed: z.literal(true) })
  .meta({ id: "VolumeRemoved" });
export type VolumeRemoved = z.infer<typeof VolumeRemoved>;
