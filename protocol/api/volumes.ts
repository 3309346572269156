import * as z from "zod";

export const maxReplicas = 10;
export const maxVolumes = 5;
/** What a replica needs at least of its pack's memory. */
export const minReplicaMb = 64;

export const VolumeName = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, "1–63 of a–z, 0–9 and -, not at the ends");

/** What a container cannot do without, or must not change: these and all below them. */
const systemFolders = (
  "/bin /boot /dev /etc /lib /lib32 /lib64 /libx32 /proc /run /sbin /sys " +
  "/usr/bin /usr/lib /usr/sbin /var/run"
).split(" ");
/** These, but not what is below them. */
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
  .refine((path) => !isSystemFolder(path), "a folder that is not the system's, such as /data");

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

/** A folder kept for a site, mounted or not. */
export const SiteVolume = z
  .object({
    name: z.string(),
    mountPath: z
      .string()
      .nullable()
      .describe(
        "Where the version in service has it, or the next deployment will; null: nowhere, its data is only kept.",
      ),
    mounted: z.boolean().describe("The version in service uses it."),
    sizeMb: z.number().nonnegative().nullable().describe("null: not there yet, or its host cannot tell now."),
  })
  .meta({ id: "SiteVolume" });
export type SiteVolume = z.infer<typeof SiteVolume>;

export const SiteVolumes = z.object({ data: z.array(SiteVolume) });
export type SiteVolumes = z.infer<typeof SiteVolumes>;

export const VolumeRemoved = z
  .object({ name: z.string(), removed: z.literal(true) })
  .meta({ id: "VolumeRemoved" });
export type VolumeRemoved = z.infer<typeof VolumeRemoved>;
