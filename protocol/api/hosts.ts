import * as z from "zod";
import { hostStatuses } from "../states.ts";
import { Timestamp } from "./common.ts";

export const HostCreate = z.strictObject({
  name: z.string().regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, "1–63 of a–z, 0–9 and -"),
  region: z.string().min(1).max(50).optional(),
});
export type HostCreate = z.infer<typeof HostCreate>;

export const HostPatch = z.strictObject({ action: z.enum(["drain", "activate"]) }).meta({ id: "HostPatch" });
export type HostPatch = z.infer<typeof HostPatch>;

export const HostRemoveQuery = z.strictObject({
  /** 1: also with sites on it, where the control plane does not hear it. They are deployed on other hosts. */
  force: z.enum(["0", "1"]).optional(),
  /** 1: with `force`, also where sites have volumes there, whose data is lost. */
  loseVolumes: z.enum(["0", "1"]).optional(),
});

export const HostRemoved = z.object({ id: z.string(), removed: z.literal(true) }).meta({ id: "HostRemoved" });
export type HostRemoved = z.infer<typeof HostRemoved>;

/** `token` enrols one agent; it is shown once. `installCommand`, run as root on a machine, makes it this host. */
export const HostCreated = z
  .object({ id: z.string(), token: z.string(), installCommand: z.string() })
  .meta({ id: "HostCreated" });
export type HostCreated = z.infer<typeof HostCreated>;

export const Host = z
  .object({
    id: z.string(),
    name: z.string(),
    status: z.enum(hostStatuses),
    region: z.string().nullable(),
    /** Its agent answers; a dead one is found within 30 seconds. */
    connected: z.boolean(),
    offlineSince: Timestamp.nullable(),
    agentVersion: z.string().nullable(),
    cpuCount: z.number().nullable(),
    memoryMb: z.number().nullable(),
    /** For further sites: less what is kept for the system and what the sites here may use. */
    freeMemoryMb: z.number().nullable(),
    /** When its agent connected. */
    diskFreeMb: z.number().nullable(),
    siteCount: z.number().int(),
    /** Of these, those that have volumes: their data is here, so a drain leaves them where they are. */
    volumeSiteCount: z.number().int(),
    databaseCount: z.number().int(),
    /** What keeps a drained host from getting empty. */
    notice: z.string().nullable(),
    createdAt: Timestamp,
    connectedAt: Timestamp.nullable(),
  })
  .meta({ id: "Host" });
export type Host = z.infer<typeof Host>;
