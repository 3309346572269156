import * as z from "zod";
import { databaseStatuses, siteStatuses } from "../states.ts";
import { Timestamp } from "./common.ts";
import { Dns } from "./dns.ts";

const count = z.number().int().nonnegative();
const money = z.array(z.object({ currency: z.string(), amountCents: z.number().int(), count }));

/** What an operator looks at first: numbers, each of which a list explains. */
export const Overview = z
  .object({
    at: Timestamp,
    hosts: z.object({
      up: count,
      draining: count.describe("Included in `up` or `down`."),
      down: z
        .array(z.object({ id: z.string(), name: z.string(), since: Timestamp.nullable() }))
        .describe("Disconnected; `since` null: never connected. At most 100."),
    }),
    sites: z.partialRecord(z.enum(siteStatuses), count).describe("Sites by status; without those of 0."),
    databases: z.partialRecord(z.enum(databaseStatuses), count),
    accounts: z.object({ total: count, newInAWeek: count, suspended: count }),
    queue: z.object({
      waiting: count,
      running: count,
      stuck: count,
      oldestWaitingAt: Timestamp.nullable(),
    }),
    deploymentsInAnHour: z.object({ live: count, failed: count }),
    money: z.object({
      since: Timestamp.describe("The first moment of this month, in UTC."),
      received: money.describe("Payments since then."),
      refunded: money.describe("Refunds since then."),
      unpaid: money.describe("Unpaid invoices of any age."),
      openFlags: count.describe("Payment events that need attention: GET /payments/flagged."),
    }),
    backups: z.object({
      failing: count.describe("Databases and volumes whose scheduled backups fail: GET /backups/failing."),
      unprotected: count.describe("Running databases without a verified backup."),
      lastVerifiedAt: Timestamp.nullable(),
    }),
    mail: z.object({
      configured: z.boolean(),
      waiting: count.describe("Written in the last three days and not yet accepted by the mail service."),
      oldestWaitingAt: Timestamp.nullable(),
      lastSentAt: Timestamp.nullable(),
    }),
    timerRanAt: Timestamp.nullable().describe("It runs every minute."),
  })
  .meta({ id: "Overview" });
export type Overview = z.infer<typeof Overview>;

const setupSteps = [
  "https",
  "timer",
  "host",
  "packs",
  "dns",
  "certificate",
  "mail",
  "payments",
  "payment_events",
  "backup_store",
  "secrets",
  "assistant",
] as const;
export type SetupStep = (typeof setupSteps)[number];

/** How the installation is set up. No secret is shown. */
export const System = z
  .object({
    version: z.string(),
    agentVersion: z
      .string()
      .nullable()
      .describe(
        "Of the agent that hosts are given, with the beginning of its SHA-256; null: it was deployed without one.",
      ),
    siteUrl: z.string(),
    webhookHost: z.string(),
    sitesOrigin: z.string(),
    signUp: z.enum(["open", "closed"]),
    signInWithGitHub: z.boolean(),
    dns: Dns,
    mail: z.object({ configured: z.boolean(), from: z.string().nullable() }),
    payments: z.object({
      processor: z.enum(["test", "stripe"]),
      live: z.boolean().describe("Real money is taken."),
      lastEventAt: Timestamp.nullable().describe("The last event of the processor, received or read."),
      eventsReadAt: Timestamp.nullable().describe("When its list of events was last read."),
    }),
    backupStore: z.object({ error: z.string().nullable() }),
    assistant: z.object({ model: z.string().nullable().describe("null: it accepts commands only.") }),
    secrets: z.object({
      keyId: z.string().describe("The encrypting key: the part after `v2.` of values that it encrypted."),
      oldKeyIds: z.array(z.string()).describe("The keys that still decrypt."),
      underOldKeys: z
        .array(z.object({ place: z.string(), rows: count }))
        .describe(
          "Values not under the current key: POST /secrets/rotate. Empty: no stored value needs an old key.",
        ),
      tokensUnderOldKeys: z
        .boolean()
        .describe(
          "API keys and webhook addresses may have been created under an old key, and stop working without it.",
        ),
      tokenKey: z
        .boolean()
        .describe(
          "API keys and webhook addresses are created under TOKEN_KEY, and outlive SECRET_KEY. false: they stop working when the SECRET_KEY they were created under is removed.",
        ),
    }),
    setup: z
      .array(
        z.object({
          step: z.enum(setupSteps),
          title: z.string(),
          done: z.boolean(),
          required: z.boolean().describe("Customers cannot be served without it."),
          todo: z.string().nullable().describe("What to do; null: nothing."),
        }),
      )
      .describe("What a new installation needs, in order."),
  })
  .meta({ id: "System" });
export type System = z.infer<typeof System>;

export const MailTested = z
  .object({ to: z.string().describe("The caller's own address."), sent: z.literal(true) })
  .meta({ id: "MailTested" });
export type MailTested = z.infer<typeof MailTested>;

/** What is wrong with the payment processor's set-up. */
export const PaymentsChecked = z.object({
  processor: z.string(),
  problems: z.array(z.string()).describe("One sentence each; empty: the key and the webhook work."),
});
export type PaymentsChecked = z.infer<typeof PaymentsChecked>;
