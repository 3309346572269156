import * as z from "zod";
import { idOf, Timestamp } from "../api/common.ts";
import { RestoredVolume } from "./jobs.ts";

/** What a host has of one site, and of one database, whatever the record says. */
const memoryMb = z.number().int().nonnegative();

export const HeldSite = z.object({
  id: idOf("site"),
  /** Its names lead to containers of these deployments. */
  serving: z.array(idOf("deployment")).max(20),
  /** These run, and nobody is led to them. */
  unrouted: z
    .array(z.object({ containerId: z.string().max(64), deploymentId: idOf("deployment").nullable() }))
    .max(50),
  /** Of what runs. */
  memoryMb,
});
export type HeldSite = z.infer<typeof HeldSite>;

/** Each by the restore that made it; null: its first. */
const HeldVolumes = z.array(RestoredVolume.nullable()).max(20);

/** A database with more than one volume: the record knows which of them is in use. */
export const DatabaseVolumes = z.object({ id: idOf("database"), volumes: HeldVolumes });
export type DatabaseVolumes = z.infer<typeof DatabaseVolumes>;

export const HeldDatabase = z.object({
  id: idOf("database"),
  running: z.boolean(),
  /** Its server kept exiting, and waits for its owner. */
  out: z.boolean(),
  volumes: HeldVolumes,
  memoryMb,
});
export type HeldDatabase = z.infer<typeof HeldDatabase>;

/** Entries in one frame. */
export const maxHeld = 500;
/** A host says what it has this often, and after it has connected. */
export const inventoryMinutes = 10;

const Bound = z.string().max(64).nullable();

/**
 * All that the host has of the sites and databases whose ids are above `after` and not above `upTo` (null: no bound): of the record's
 * others it has nothing. `asOf` is a moment by the control plane's clock that is not after anything in it was looked at.
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

/** What the host itself is to do about it; all else comes as jobs. */
export const Verdicts = z.object({
  type: z.literal("verdicts"),
  /** No record knows them: what runs of them stops, and is kept aside. */
  setAside: z.array(z.union([idOf("site"), idOf("database")])).max(2 * maxHeld),
  /** Containers of these sites that run beside what serves, which is what the record wants. */
  retire: z
    .array(z.object({ siteId: idOf("site"), containerIds: z.array(z.string().max(64)).max(50) }))
    .max(maxHeld),
});
export type Verdicts = z.infer<typeof Verdicts>;

/** What a host has of a site or a database that has been set aside, or may be. */
export const Kept = z.object({
  id: z.union([idOf("site"), idOf("database")]),
  accountId: z.string().max(64).nullable(),
  /** null: it still runs, or nothing of it ever had a container here since. */
  setAsideAt: Timestamp.nullable(),
  running: z.boolean(),
  containerCount: z.number().int().nonnegative(),
  imageCount: z.number().int().nonnegative(),
  volumes: z
    .array(z.object({ name: z.string().max(255), sizeMb: z.number().nonnegative().nullable() }))
    .max(100),
});
export type Kept = z.infer<typeof Kept>;
