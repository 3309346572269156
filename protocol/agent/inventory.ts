import * as z from "zod";
import { idOf, Timestamp } from "../api/common.ts";
import { RestoredVolume } from "./jobs.ts";

/** The actual state of one site or database on a host, independent of the record. */
const memoryMb = z.number().int().nonnegative();

export const HeldSite = z.object({
  id: idOf("site"),
  /** The deployments whose containers its names route to. */
  serving: z.array(idOf("deployment")).max(20),
  /** Deployments that run without receiving traffic. */
  unrouted: z
    .array(z.object({ containerId: z.string().max(64), deploymentId: idOf("deployment").nullable() }))
    .max(50),
  /** The memory of the running containers. */
  memoryMb,
});
export type HeldSite = z.infer<typeof HeldSite>;

/** Volumes by the restore that created them; null: the original volume. */
const HeldVolumes = z.array(RestoredVolume.nullable()).max(20);

/** A database with several volumes: the record knows which one is in use. */
export const DatabaseVolumes = z.object({ id: idOf("database"), volumes: HeldVolumes });
export type DatabaseVolumes = z.infer<typeof DatabaseVolumes>;

export const HeldDatabase = z.object({
  id: idOf("database"),
  running: z.boolean(),
  /** Its server kept exiting and stays stopped until its owner acts. */
  out: z.boolean(),
  volumes: HeldVolumes,
  memoryMb,
});
export type HeldDatabase = z.infer<typeof HeldDatabase>;

/** Entries per message. */
export const maxHeld = 500;
/** How often a host sends its inventory, besides after connecting. */
export const inventoryMinutes = 10;

const Bound = z.string().max(64).nullable();

/**
 * Everything the host has of sites and databases with ids above `after` up to `upTo` (null: no upper bound). Recorded
 * ids in this range that are missing here are missing on the host. `asOf`, by the control plane's clock, is no later
 * than any observation in it.
 */
export const Inventory = z.object({
  type: z.literal("inventory"),
  asOf: Timestamp,
  after: Bound,
  upTo: Bound,
  sites: z.array(HeldSite).max(maxHeld),
  databases: z.array(HeldDatabase).max(maxHeld),
});
export type Inventory = z.infer<typeof Inventory>;

/** Corrections that the host applies itself; all others are sent as jobs. */
export const Verdicts = z.object({
  type: z.literal("verdicts"),
  /** Unknown to the record: the host stops their containers and sets them aside. */
  setAside: z.array(z.union([idOf("site"), idOf("database")])).max(2 * maxHeld),
  /** Containers of these sites that run beside the recorded version. */
  retire: z
    .array(z.object({ siteId: idOf("site"), containerIds: z.array(z.string().max(64)).max(50) }))
    .max(maxHeld),
});
export type Verdicts = z.infer<typeof Verdicts>;

/** The remains of a site or database that is set aside, or may be. */
export const Kept = z.object({
  id: z.union([idOf("site"), idOf("database")]),
  accountId: z.string().max(64).nullable(),
  /** null: it still runs, or it never had a container here since. */
  setAsideAt: Timestamp.nullable(),
  running: z.boolean(),
  containerCount: z.number().int().nonnegative(),
  imageCount: z.number().int().nonnegative(),
  volumes: z
    .array(z.object({ name: z.string().max(255), sizeMb: z.number().nonnegative().nullable() }))
    .max(100),
});
export type Kept = z.infer<typeof Kept>;
