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
