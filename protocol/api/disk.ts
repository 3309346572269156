import * as z from "zod";

const megabytes = z.number().nonnegative();
const measured = megabytes.nullable();

/** At most this many images or volumes are named of one resource. */
export const maxDiskItems = 100;

/** What a host measures of a site or database; null: the host cannot measure it now. */
export const DiskUsed = z.object({
  writtenMb: measured.describe("What the containers in service wrote outside their volumes."),
  volumes: z
    .array(z.object({ name: z.string().max(200), sizeMb: measured }))
    .max(maxDiskItems)
    .describe(
      "Mounted or detached. Of a database: the volume of its data, and that of a restore in progress.",
    ),
  images: z
    .array(z.object({ deploymentId: z.string().max(200), sizeMb: megabytes }))
    .max(maxDiskItems)
    .describe("Kept for the version in service and for rollbacks. Layers that images share count in each."),
  logMb: measured.describe("The logs of the containers, and the last lines of those that were removed."),
  buildCacheMb: measured.describe(
    "What the package managers of its builds have cached; null also if the engine does not say whose it is (before Docker 23).",
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
      "What counts towards the limit: of a site what its containers wrote and its volumes hold, of a database the volume that it runs on.",
    ),
    notMeasured: z
      .string()
      .nullable()
      .describe("Why the host measured nothing: it has not run yet, or its host does not answer."),
  })
  .meta({ id: "DiskUse" });
export type DiskUse = z.infer<typeof DiskUse>;

/** Of the newest sites and databases. */
export const AccountDiskUse = z
  .object({
    data: z.array(DiskUse),
    truncated: z.boolean().describe("The account has more sites and databases than are shown."),
  })
  .meta({ id: "AccountDiskUse" });
export type AccountDiskUse = z.infer<typeof AccountDiskUse>;
