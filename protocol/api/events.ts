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
      "Go on after this event. The header `Last-Event-ID`, which browsers send by themselves, goes before it.",
    ),
});
export type EventQuery = z.infer<typeof EventQuery>;

/** The data of one `change` event: what has changed, and the fields that a page shows at once. */
export const AccountEvent = z
  .object({
    type: z.enum(accountEventTypes),
    id: z.string().describe("The id of what has changed; of `credits`, the account's."),
    deleted: z.literal(true).optional(),
    status: z.string().optional().describe("The status that it has now."),
    number: z.number().int().optional().describe("Of a deployment."),
    name: z.string().optional().describe("Of a domain."),
    balance: z.number().int().optional().describe("Of `credits`."),
    siteId: z.string().optional().describe("The site that it belongs to."),
    databaseId: z.string().optional().describe("The database that it belongs to."),
    resourceId: z.string().nullable().optional().describe("What an invoice or an activity is about."),
    operation: z.string().optional().describe("Of an activity, as in `GET /activity`."),
    actor: z.string().optional().describe("Of an activity, as in `GET /activity`."),
    outcome: z.string().optional().describe("Of an activity, as in `GET /activity`."),
  })
  .meta({ id: "AccountEvent" });
export type AccountEvent = z.infer<typeof AccountEvent>;
