import * as z from "zod";
import { idPrefixes } from "../ids.ts";
import { activityActors, automaticActions } from "../states.ts";
import { Key } from "./keys.ts";
import { idFilter, listQuery, Timestamp } from "./common.ts";

const ResourceId = z
  .string()
  .regex(new RegExp(`^(?:${Object.values(idPrefixes).join("|")})_[0-9a-z]{1,40}$`), "an id");

const filters = {
  resource: ResourceId.optional().describe("Only changes to this resource, by its id."),
  since: Timestamp.optional().describe("Only entries at this time or later."),
  actor: z.enum(activityActors).optional().describe("Only entries of actors of this kind."),
  only: z
    .enum(["changes", "calls"])
    .optional()
    .describe(
      "`changes`: without the assistant's tool calls as such, and without what an operator who views the account has read; what a call changed is among the changes. `calls`: tool calls alone.",
    ),
};
export const ActivityQuery = listQuery("activity").extend(filters);
export type ActivityQuery = z.infer<typeof ActivityQuery>;

export const AllActivityQuery = listQuery("activity").extend({
  ...filters,
  accountId: idFilter("account").describe("Only changes to resources of this account."),
});
export type AllActivityQuery = z.infer<typeof AllActivityQuery>;

export const Activity = z
  .object({
    id: z.string(),
    at: Timestamp,
    accountId: z
      .string()
      .nullable()
      .describe("The account that owns the resource; for hosts, packs and the like, the operator's."),
    actor: z.enum(activityActors),
    actorId: z
      .string()
      .nullable()
      .describe(
        "The key, session, conversation or host that acted; null for the service itself and for links.",
      ),
    key: Key.pick({ name: true, start: true, origin: true })
      .nullable()
      .describe("The account's key that acted; `device`: of an authorized command line."),
    browser: z
      .string()
      .nullable()
      .describe("The User-Agent of the account's session that acted, while it is signed in."),
    operation: z
      .string()
      .describe(
        `The operation's id in this document; the name of the assistant's tool that was called, such as \`get_site_logs\`, or \`unknown_tool\`; or an automatic action of the service or a host: ${automaticActions.map((name) => `\`${name}\``).join(", ")}.`,
      ),
    resourceId: z.string().nullable(),
    arguments: z
      .record(z.string(), z.unknown())
      .describe("The arguments as given, without secrets. Long texts are truncated."),
    outcome: z
      .string()
      .describe(
        "`done`; the error code if it was refused; or `asked`: a confirmation was asked for, and nothing was done.",
      ),
    requestId: z.string().nullable(),
  })
  .meta({ id: "Activity" });
export type Activity = z.infer<typeof Activity>;
