import * as z from "zod";
import { wholeNumber } from "./common.ts";

const accountEventTypes = [
  "account",
  "site",
  "deployment",
  "command",
  "domain",
  "database",
  "backup",
  "invoice",
  "credits",
  "activity",
] as const;

export const EventQuery = z.strictObject({
  after: wholeNumber(0, Number.MAX_SAFE_INTEGER)
    .optional()
    .describe(
      "Resume after this event. The header `Last-Event-ID`, which browsers send automatically, takes precedence.",
    ),
});
export type EventQuery = z.infer<typeof EventQuery>;

/** The data of one `change` event: what has changed, and the fields that a page shows at once. */
export const AccountEvent = z
  .object({
    type: z.enum(accountEventTypes),
    id: z.string().describe("The id of the changed resource; for `credits`, the account's."),
    deleted: z.literal(true).optional(),
    status: z.string().optional().describe("The current status."),
    number: z.number().int().optional().describe("Of a deployment."),
    name: z.string().optional().describe("Of a domain."),
    balance: z.number().int().optional().describe("Of `credits`."),
    siteId: z.string().optional().describe("The site it belongs to."),
    databaseId: z.string().optional().describe("The database it belongs to."),
    resourceId: z.string().nullable().optional().describe("The resource of an invoice or an activity."),
    operation: z.string().optional().describe("Of an activity, as in `GET /activity`."),
    actor: z.string().optional().describe("Of an activity, as in `GET /activity`."),
    outcome: z.string().optional().describe("Of an activity, as in `GET /activity`."),
  })
  .meta({ id: "AccountEvent" });
export type AccountEvent = z.infer<typeof AccountEvent>;
