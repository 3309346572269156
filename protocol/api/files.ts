import * as z from "zod";
import { text, Timestamp } from "./common.ts";
import { VolumeName } from "./volumes.ts";

/** Of one folder, and of one file. */
export const maxEntries = 1000;
export const maxFileBytes = 128 * 1024;

export const FilesQuery = z.strictObject({
  path: text
    .min(1)
    .max(1000)
    .default("/")
    .describe("A folder or a file, from the root of the container or of the volume."),
  volume: VolumeName.optional().describe("A volume, mounted or not; default: the container in service."),
});
export type FilesQuery = z.infer<typeof FilesQuery>;

export const BrowsedEntry = z.object({
  name: z.string(),
  kind: z.enum(["file", "folder", "link", "other"]),
  sizeBytes: z.number().int().nonnegative().nullable().describe("null: not a file."),
  modifiedAt: Timestamp,
});
export type BrowsedEntry = z.infer<typeof BrowsedEntry>;

const path = z.string().describe("Its path after resolving all links.");

export const Browsed = z
  .discriminatedUnion("kind", [
    z.object({
      kind: z.literal("folder"),
      path,
      entries: z.array(BrowsedEntry).max(maxEntries).describe("By name; at most 1,000."),
      truncated: z.boolean(),
    }),
    z.object({
      kind: z.literal("file"),
      path,
      sizeBytes: z.number().int().nonnegative(),
      text: z
        .string()
        .nullable()
        .describe("The first 128 KiB, with secret variables masked; null: not UTF-8 text."),
      truncated: z.boolean(),
    }),
  ])
  .meta({ id: "Browsed" });
export type Browsed = z.infer<typeof Browsed>;
