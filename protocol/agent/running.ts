import * as z from "zod";
import { idOf, Timestamp } from "../api/common.ts";
import { SiteEvent, SiteSample } from "../api/running.ts";
import { VolumeName } from "../api/volumes.ts";

const SiteId = idOf("site");

/** What the container wrote, cut here. */
export const maxSiteLineCharacters = 16 * 1024;
/** Samples kept per site: a day of minutes. */
export const keepSamples = 1440;
/** Events kept per site. */
export const keepEvents = 200;

/** `at` has nanoseconds and is unique within a container, in the order of its log: a place to go on from. */
export const SiteLogLine = z.object({
  at: Timestamp,
  stream: z.enum(["stdout", "stderr"]),
  /** Which of the site's containers wrote it, from 1. */
  replica: z.number().int().positive().optional(),
  text: z.string().max(maxSiteLineCharacters + 20),
});
export type SiteLogLine = z.infer<typeof SiteLogLine>;

/** What the control plane asks of a site on this host, while somebody waits for the answer. */
export const Question = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("logs"),
    siteId: SiteId,
    /** Lines from the end; when following after a time, all lines after it. */
    tail: z.number().int().min(0).max(1000),
    after: Timestamp.nullable(),
    /** Answers go on until `endAsk`. */
    follow: z.boolean(),
  }),
  z.object({ kind: z.literal("metrics"), siteId: SiteId }),
  z.object({ kind: z.literal("events"), siteId: SiteId }),
  z.object({ kind: z.literal("volumes"), siteId: SiteId }),
  /** Its data goes, unless a container uses it. */
  z.object({ kind: z.literal("removeVolume"), siteId: SiteId, name: VolumeName }),
]);
export type Question = z.infer<typeof Question>;

export const Answer = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("logs"), lines: z.array(SiteLogLine).max(1000) }),
  z.object({ kind: z.literal("metrics"), samples: z.array(SiteSample).max(keepSamples) }),
  z.object({ kind: z.literal("events"), events: z.array(SiteEvent).max(keepEvents) }),
  /** `sizeMb` null: the host cannot tell. */
  z.object({
    kind: z.literal("volumes"),
    volumes: z.array(z.object({ name: z.string(), sizeMb: z.number().nonnegative().nullable() })).max(1000),
  }),
  z.object({ kind: z.literal("removeVolume") }),
  /** One plain sentence for the person who asked. */
  z.object({ kind: z.literal("refused"), error: z.string().min(1).max(500) }),
]);
export type Answer = z.infer<typeof Answer>;
