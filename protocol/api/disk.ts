import * as z from "zod";

const megabytes = z.number().nonnegative();
const measured = megabytes.nullable();

/** At most this many images or volumes are named of one resource. */
export const maxDiskItems = 100;

/** What a host measures of a site or database; null: the host cannot measure it now. */
export const DiskUsed = z.object({
  writtenMb: measured.describe("Data that the containers in service wrote outside their volumes."),
  volumes: z
    .array(z.object({ name: z.string().max(200), sizeMb: measured }))
    .max(maxDiskItems)
    .describe("Mounted or detached. For a database: its data volume, and that of a restore in progress."),
  images: z
    .array(z.object({ deploymentId: z.string().max(200), sizeMb: megabytes }))
    .max(maxDiskItems)
    .describe("Kept for the version in service and for rollbacks. Shared layers count in each image."),
  logMb: measured.describe("The containers' logs, and the last lines of removed ones."),
  buildCacheMb: measured.describe(
    "The package managers' caches of its builds; null also if the engine does not report their owner (before Docker 23).",
  ),
});
export type DiskUsed = z.infer<typeof DiskUsed>;

export const DiskUse = z
  .object({
    ...DiskUsed.shape,
    kind: z.enum(["site", "database"]),
    id: z.string(),
    name: z.string(),
    limitMb: megabytes.describe("The pack's disk."),
    countedMb: measured.describe(
      "What counts towards the limit: a site's container data and volumes, or the volume that a database runs on.",
    ),
    notMeasured: z
      .string()
      .nullable()
      .describe("Why nothing was measured: it has not run yet, or its host does not respond."),
  })
  .meta({ id: "DiskUse" });
export type DiskUse = z.infer<typeof DiskUse>;

/** Of the newest sites and databases. */
export const AccountDiskUse = z
  .object({
    data: z.array(DiskUse),
    truncated: z.boolean().describe("The account has more sites or databases than shown."),
  })
  .meta({ id: "AccountDiskUse" });
export type AccountDiskUse = z.infer<typeof AccountDiskUse>;
