import * as z from "zod";
import { hostStatuses } from "../states.ts";
import { Timestamp } from "./common.ts";
import { Region } from "./sites.ts";

export const HostCreate = z.strictObject({
  name: z.string().regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, "1–63 of a–z, 0–9 and -"),
  region: Region.min(1).optional(),
});
export type HostCreate = z.infer<typeof HostCreate>;

export const HostPatch = z.strictObject({ action: z.enum(["drain", "activate"]) }).meta({ id: "HostPatch" });
export type HostPatch = z.infer<typeof HostPatch>;

export const HostRemoveQuery = z.strictObject({
  force: z
    .enum(["0", "1"])
    .optional()
    .describe(
      "1: also with sites on it, where the control plane does not hear it. They are deployed on other hosts.",
    ),
  loseVolumes: z
    .enum(["0", "1"])
    .optional()
    .describe("1: with `force`, also where sites have volumes there, whose data is lost."),
});

export type HostRemoveQuery = z.infer<typeof HostRemoveQuery>;

export const HostRemoved = z.object({ id: z.string(), removed: z.literal(true) }).meta({ id: "HostRemoved" });
export type HostRemoved = z.infer<typeof HostRemoved>;

/** `token` enrols one agent. `installCommand`, run as root on a machine, makes it this host. */
export const HostCreated = z
  .object({
    id: z.string(),
    token: z
      .string()
      .optional()
      .describe("Shown once: the answer that is replayed under an Idempotency-Key has neither."),
    installCommand: z.string().optional(),
  })
  .meta({ id: "HostCreated" });
export type HostCreated = z.infer<typeof HostCreated>;

export const Host = z
  .object({
    id: z.string(),
    name: z.string(),
    status: z.enum(hostStatuses),
    region: z.string().nullable(),
    connected: z.boolean().describe("Its agent answers; a dead one is found within 30 seconds."),
    offlineSince: Timestamp.nullable(),
    agentVersion: z.string().nullable(),
    cpuCount: z.number().nullable(),
    memoryMb: z.number().nullable(),
    freeMemoryMb: z
      .number()
      .nullable()
      .describe("For further sites: less what is kept for the system and what the sites here may use."),
    diskFreeMb: z.number().nullable().describe("When its agent connected."),
    siteCount: z.number().int(),
    volumeSiteCount: z
      .number()
      .int()
      .describe(
        "Of these, those that have volumes: their data is here, so a drain leaves them where they are.",
      ),
    databaseCount: z.number().int(),
    notice: z.string().nullable().describe("What keeps a drained host from getting empty."),
    ingressReplacedAt: Timestamp.nullable().describe(
      "When its agent last replaced what serves sites there, as it did not answer or had no memory left.",
    ),
    createdAt: Timestamp,
    connectedAt: Timestamp.nullable(),
  })
  .meta({ id: "Host" });
export type Host = z.infer<typeof Host>;

export const SetAside = z
  .object({
    id: z
      .string()
      .describe(
        "Of a site or a database that no record puts on this host; or of a database that runs here on another volume than these.",
      ),
    accountId: z.string().nullable(),
    setAsideAt: Timestamp.nullable().describe("null: nothing of it has a container."),
    running: z.boolean().describe("It is stopped within ten minutes."),
    containerCount: z.number().int(),
    imageCount: z.number().int(),
    volumes: z.array(
      z.object({
        name: z.string(),
        sizeMb: z.number().nonnegative().nullable().describe("null: its host could not tell in time."),
      }),
    ),
  })
  .meta({ id: "SetAside" });
export type SetAside = z.infer<typeof SetAside>;

export const SetAsideList = z.object({ data: z.array(SetAside) }).meta({ id: "SetAsideList" });
export type SetAsideList = z.infer<typeof SetAsideList>;

export const SetAsideRemoved = z
  .object({ id: z.string(), removed: z.literal(true) })
  .meta({ id: "SetAsideRemoved" });
export type SetAsideRemoved = z.infer<typeof SetAsideRemoved>;
