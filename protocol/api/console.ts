import * as z from "zod";
import { jobKinds } from "../agent/jobs.ts";
import {
  databaseStatuses,
  databaseTypes,
  invoiceKinds,
  invoiceStatuses,
  jobStatuses,
  siteStatuses,
} from "../states.ts";
import { Search } from "./accounts.ts";
import { idFilter, listQuery, Timestamp } from "./common.ts";
import { Invoice } from "./invoices.ts";

/** Whose it is, in the lists of operators. */
const owner = { accountId: z.string(), accountEmail: z.string() };

const AccountId = idFilter("account");
const HostId = idFilter("host");

export const AllSitesQuery = listQuery("site").extend({
  status: z.enum(siteStatuses).optional().describe("Only sites with this status."),
  hostId: HostId.describe("Only sites on this host."),
  accountId: AccountId.describe("Only sites of this account."),
  search: Search.describe("Only sites whose id, name, address or custom domain contains this text."),
});
export type AllSitesQuery = z.infer<typeof AllSitesQuery>;

/** A site in the list of all sites. */
export const SiteForOperator = z
  .object({
    id: z.string(),
    name: z.string(),
    ...owner,
    status: z.enum(siteStatuses),
    error: z.string().nullable().describe("Of the latest deployment."),
    url: z.string(),
    domains: z.array(z.string()).describe("Verified custom domains."),
    hostId: z.string().nullable(),
    hostName: z.string().nullable(),
    hostOffline: z.boolean(),
    packId: z.string(),
    paidUntil: Timestamp.nullable(),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  })
  .meta({ id: "SiteForOperator" });
export type SiteForOperator = z.infer<typeof SiteForOperator>;

export const AllDatabasesQuery = listQuery("database").extend({
  status: z.enum(databaseStatuses).optional().describe("Only databases with this status."),
  hostId: HostId.describe("Only databases on this host."),
  accountId: AccountId.describe("Only databases of this account."),
  search: Search.describe("Only databases whose id or name contains this text."),
});
export type AllDatabasesQuery = z.infer<typeof AllDatabasesQuery>;

/** A database in the list of all databases. */
export const DatabaseForOperator = z
  .object({
    id: z.string(),
    name: z.string(),
    ...owner,
    type: z.enum(databaseTypes),
    version: z.string().nullable(),
    status: z.enum(databaseStatuses),
    error: z.string().nullable(),
    hostId: z.string().nullable(),
    hostName: z.string().nullable(),
    hostOffline: z.boolean(),
    diskMb: z.number().int().nullable(),
    backupsFailingSince: Timestamp.nullable(),
    lastVerifiedBackupAt: Timestamp.nullable().describe("When the newest verified backup was made."),
    packId: z.string(),
    paidUntil: Timestamp.nullable(),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  })
  .meta({ id: "DatabaseForOperator" });
export type DatabaseForOperator = z.infer<typeof DatabaseForOperator>;

export const AllInvoicesQuery = listQuery("invoice").extend({
  status: z.enum(invoiceStatuses).optional().describe("Only invoices with this status."),
  kind: z.enum(invoiceKinds).optional().describe("Only invoices of this kind."),
  accountId: AccountId.describe("Only invoices of this account."),
  search: Search.describe(
    "Only the invoice with this number, and those whose id, resource or account's email address contains this text.",
  ),
});
export type AllInvoicesQuery = z.infer<typeof AllInvoicesQuery>;

/** An invoice in the list of all invoices. Its token opens the page on which it is paid. */
export const InvoiceForOperator = Invoice.extend(owner).meta({ id: "InvoiceForOperator" });
export type InvoiceForOperator = z.infer<typeof InvoiceForOperator>;

const jobStates = ["waiting", "running", "stuck", "ended"] as const;

/** Why a queued job has not begun. */
const jobWaits = ["turn", "database", "no_host", "host", "closed", "room", "slot"] as const;
export type JobWait = (typeof jobWaits)[number];

export const JobsQuery = listQuery("job").extend({
  state: z
    .enum(jobStates)
    .optional()
    .describe(
      "waiting: queued. running: leased by a host. stuck: queued for ten minutes or more, or its host is not connected. ended: done, failed or cancelled in the last 30 days. Default: waiting and running.",
    ),
  hostId: HostId.describe("Only jobs of this host."),
  accountId: AccountId.describe("Only jobs of this account."),
});
export type JobsQuery = z.infer<typeof JobsQuery>;

export const Job = z
  .object({
    id: z.string(),
    kind: z.enum(jobKinds),
    status: z.enum(jobStatuses),
    stuck: z.boolean(),
    ...owner,
    siteId: z.string().nullable(),
    databaseId: z.string().nullable(),
    name: z.string().nullable().describe("Of the site or database; null if it is gone."),
    deploymentId: z.string().nullable(),
    commandId: z.string().nullable(),
    backupId: z.string().nullable(),
    hostId: z.string().nullable().describe("null: no host has taken it yet, and any may."),
    hostName: z.string().nullable(),
    waitsFor: z
      .object({
        code: z
          .enum(jobWaits)
          .describe(
            "turn: an earlier job of the same resource. database: a database of its site is being created. no_host: no connected host has enough free memory. host: its host is not connected. closed: its host takes no jobs, because its Docker engine does not answer or its agent is being replaced. room: its host has no memory left for it. slot: a free slot.",
          ),
        reason: z.string(),
      })
      .nullable(),
    attempt: z.number().int().describe("How often it was sent to a host."),
    cancelRequested: z.boolean(),
    cancellable: z.boolean().describe("Whether cancelling it leaves its resource consistent."),
    retryable: z.boolean().describe("It failed, is of a repeatable kind, and no newer request exists."),
    error: z.string().nullable(),
    createdAt: Timestamp,
    leasedAt: Timestamp.nullable(),
    deadlineAt: Timestamp.describe("When it fails unless a host has taken it, or finished it, by then."),
    finishedAt: Timestamp.nullable(),
  })
  .meta({ id: "Job" });
export type Job = z.infer<typeof Job>;
