import * as z from "zod";
import { hostStatuses } from "../states.ts";
import { Timestamp } from "./common.ts";
import { Region } from "./sites.ts";

export const HostToken = z
  .string()
  .regex(/^hst_[0-9a-z][0-9A-Za-z]{43}$/, "a host's token: hst_ and 44 letters and digits");

export const HostCreate = z.strictObject({
  name: z.string().regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, "1–63 of a–z, 0–9 and -"),
  region: Region.min(1).optional(),
  token: HostToken.optional().describe(
    "The token of a machine that was a host before (BERTH_HOST_TOKEN in its /etc/berth/agent.env): its agent recognizes by it the sites and databases that it runs. Left out: a new one.",
  ),
});
export type HostCreate = z.infer<typeof HostCreate>;

const Ipv4 = z
  .ipv4()
  .refine(
    (text) => Number(text.split(".")[0]) > 0 && Number(text.split(".")[0]) < 224,
    "not a host's address",
  );
const Ipv6 = z.ipv6().refine((text) => !/^(::|ff)/i.test(text) || text === "::1", "not a host's address");

export const HostPatch = z
  .strictObject({
    action: z.enum(["drain", "activate"]).optional(),
    ipv4: Ipv4.nullable()
      .optional()
      .describe(
        "The address at which visitors reach the host; null: the public address that its agent connects from.",
      ),
    ipv6: Ipv6.nullable().optional().describe("null: not reachable by IPv6."),
    memoryMb: z
      .number()
      .int()
      .min(1)
      .max(1_000_000_000)
      .nullable()
      .optional()
      .describe(
        "The most memory of the host that sites and databases get; null: all that its agent reports now.",
      ),
  })
  .refine((patch) => Object.values(patch).some((value) => value !== undefined), "name what is to change")
  .meta({ id: "HostPatch" });
export type HostPatch = z.infer<typeof HostPatch>;

export const HostRemoveQuery = z.strictObject({
  force: z
    .enum(["0", "1"])
    .optional()
    .describe(
      "1: remove the host even if it has sites, provided the control plane cannot reach it. The sites are redeployed on other hosts.",
    ),
  loseVolumes: z
    .enum(["0", "1"])
    .optional()
    .describe("1: with `force` or `connected`, also if sites have volumes on the host. Their data is lost."),
  connected: z
    .enum(["0", "1"])
    .optional()
    .describe(
      "1: like `force`, also if the host is connected, such as with a stolen token: its connection is ended, and its token refused from then on.",
    ),
});

export type HostRemoveQuery = z.infer<typeof HostRemoveQuery>;

export const HostRemoved = z.object({ id: z.string(), removed: z.literal(true) }).meta({ id: "HostRemoved" });
export type HostRemoved = z.infer<typeof HostRemoved>;

/** `token` enrols one agent. Running `installCommand` as root turns a machine into this host. */
export const HostCreated = z
  .object({
    id: z.string(),
    token: z
      .string()
      .optional()
      .describe("Shown once: a replay under the same Idempotency-Key omits both the token and the command."),
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
    connected: z.boolean().describe("The agent responds; a lost connection is detected within 30 seconds."),
    offlineSince: Timestamp.nullable(),
    agentVersion: z.string().nullable(),
    cpuCount: z.number().nullable(),
    memoryMb: z
      .number()
      .nullable()
      .describe(
        "What its agent reports, but no more than it reported at its first connection or an operator has set since; null: unknown.",
      ),
    freeMemoryMb: z
      .number()
      .nullable()
      .describe(
        "Memory available for further sites, after the system reserve and the limits of the current sites.",
      ),
    diskFreeMb: z
      .number()
      .nullable()
      .describe("Of the disk that containers write to, as the agent last reported it; null: unknown."),
    siteCount: z.number().int(),
    volumeSiteCount: z
      .number()
      .int()
      .describe(
        "Sites with volumes, included in siteCount. Their data is on this host, so draining does not move them.",
      ),
    linkedSiteCount: z
      .number()
      .int()
      .describe(
        "Sites without volumes, included in siteCount, that stay because a database here is linked to them.",
      ),
    databaseCount: z.number().int(),
    notice: z.string().nullable().describe("Why a draining host cannot become empty."),
    problems: z
      .array(z.string())
      .describe(
        "What keeps the host from serving visitors or from taking new sites, or its agent from its update, or why memory that it reports is not used, or that its clock is wrong or its Docker or Git too old to be safe, and what to do, as its agent last reported it.",
      ),
    ingressReplacedAt: Timestamp.nullable().describe(
      "When the agent last replaced the ingress because it did not respond or was out of memory.",
    ),
    ipv4: z
      .string()
      .nullable()
      .describe("The address of visitors and of its sites' DNS records; null: unknown."),
    ipv6: z.string().nullable(),
    forwardingNotice: z
      .string()
      .nullable()
      .describe(
        "Why a site's former host does not forward requests to this host after a move, and answers with its copy; null: it does.",
      ),
    createdAt: Timestamp,
    connectedAt: Timestamp.nullable(),
  })
  .meta({ id: "Host" });
export type Host = z.infer<typeof Host>;

const Used = z.object({ usedMb: z.number().int().nonnegative(), totalMb: z.number().int().nonnegative() });

export const HostUsage = z
  .object({
    at: Timestamp,
    cpuCount: z.number().int().positive(),
    cpuBusy: z
      .number()
      .min(0)
      .max(1)
      .nullable()
      .describe("The busy share of all processors over ten seconds; null: its agent has just started."),
    memory: Used.describe("Used by everything on the machine, without caches."),
    disk: Used.nullable().describe("The engine's disk; null: the agent cannot read it."),
  })
  .meta({ id: "HostUsage" });
export type HostUsage = z.infer<typeof HostUsage>;

const SetAside = z
  .object({
    id: z
      .string()
      .describe(
        "The id of a site or database that no record assigns to this host, or of a database that runs here on a different volume.",
      ),
    accountId: z.string().nullable(),
    setAsideAt: Timestamp.nullable().describe("null: it has no containers."),
    running: z.boolean().describe("Stopped within ten minutes."),
    containerCount: z.number().int(),
    imageCount: z.number().int(),
    volumes: z.array(
      z.object({
        name: z.string(),
        sizeMb: z.number().nonnegative().nullable().describe("null: the host could not measure it in time."),
      }),
    ),
  })
  .meta({ id: "SetAside" });
type SetAside = z.infer<typeof SetAside>;

export const SetAsideList = z.object({ data: z.array(SetAside) }).meta({ id: "SetAsideList" });
export type SetAsideList = z.infer<typeof SetAsideList>;

export const SetAsideRemoved = z
  .object({ id: z.string(), removed: z.literal(true) })
  .meta({ id: "SetAsideRemoved" });
export type SetAsideRemoved = z.infer<typeof SetAsideRemoved>;
