import type { Job } from "../../../protocol/api/console.ts";
import type { FlagReason } from "../../../protocol/states.ts";

/** What a host is asked for, as operators say it. */
export const jobWords: Record<Job["kind"], string> = {
  "site.deploy": "Deploy",
  "site.start": "Start",
  "site.stop": "Stop",
  "site.restart": "Restart",
  "site.route": "Change the routes of",
  "site.delete": "Delete",
  "site.evict": "Remove the old copy of",
  "site.command": "Run a command in",
  "database.provision": "Set up",
  "database.start": "Start",
  "database.restart": "Restart",
  "database.stop": "Stop",
  "database.rotate": "Change the password of",
  "database.expose": "Change the public access of",
  "database.delete": "Delete",
  "database.backup": "Back up",
  "database.verify": "Try a backup of",
  "database.restore": "Restore a backup of",
  "volume.backup": "Back up a volume of",
  "volume.verify": "Try a volume's backup of",
  "volume.restore": "Restore a volume of",
};

/** `Deploy my-app`; a resource that is gone has no name. */
export const jobText = (job: Pick<Job, "kind" | "name">): string =>
  `${jobWords[job.kind]} ${job.name ?? goneOf(job)}`;

export const goneOf = ({ kind }: Pick<Job, "kind">): string =>
  kind.startsWith("database") ? "a database" : "a site";

/** What happened to the money, and what to do. */
export const flagWords: Record<FlagReason, string> = {
  unknown_invoice:
    "A payment names no invoice of this installation. Find the payer at the processor and refund it.",
  invoice_void: "A void invoice was paid. Refund the payment at the processor.",
  paid_twice: "An invoice was paid twice. Refund the second payment at the processor.",
  wrong_amount:
    "A payment has another amount than its invoice. Refund it at the processor, or settle it with the payer.",
  wrong_currency: "A payment has another currency than its invoice. Refund it at the processor.",
  wrong_mode: "An event of the processor's other mode (test or live) arrived. Check its keys and webhook.",
  refunded_elsewhere:
    "A payment was refunded at the processor. What it paid for still runs: decide whether it should.",
  refund_failed: "The processor could not complete a refund. Pay the customer in another way.",
  refund_of_spent_credits: "Credits were refunded that had been spent already.",
  disputed: "The payer disputes a payment at the bank. Answer the dispute at the processor.",
  owner_not_warned:
    "No warning mail could be delivered, so what is suspended is not deleted. Reach the owner in another way.",
};
