import * as z from "zod";
import { channelTypes, deliveryStatuses, notificationKinds } from "../states.ts";
import { idFilter, listQuery, text, Timestamp } from "./common.ts";

const Url = text
  .max(2000)
  .pipe(z.url({ protocol: /^https$/, error: "an address such as https://example.com/hooks/berth" }));
const Name = text.trim().min(1).max(60);
const Kinds = z
  .array(z.enum(notificationKinds))
  .min(1)
  .max(notificationKinds.length)
  .refine((kinds) => new Set(kinds).size === kinds.length, "name each kind once");

export const ChannelCreate = z
  .discriminatedUnion("type", [
    z.strictObject({ type: z.literal("mail"), name: Name.optional(), kinds: Kinds }),
    z.strictObject({ type: z.enum(["webhook", "slack"]), name: Name.optional(), url: Url, kinds: Kinds }),
  ])
  .meta({ id: "NotificationChannelCreate" });
export type ChannelCreate = z.infer<typeof ChannelCreate>;

export const ChannelPatch = z
  .strictObject({
    name: Name.optional(),
    url: Url.optional().describe("Not for a mail channel."),
    kinds: Kinds.optional(),
    enabled: z.boolean().optional(),
  })
  .refine((patch) => Object.keys(patch).length > 0, "name at least one field to change")
  .meta({ id: "NotificationChannelPatch" });
export type ChannelPatch = z.infer<typeof ChannelPatch>;

export const Channel = z
  .object({
    id: z.string(),
    type: z.enum(channelTypes),
    name: z.string(),
    target: z
      .string()
      .describe(
        "The account's email address, the webhook's address, or the host of a Slack address, which is secret.",
      ),
    kinds: z.array(z.enum(notificationKinds)),
    enabled: z.boolean(),
    disabledReason: z
      .string()
      .nullable()
      .describe("Why it was disabled: its receiver responded that it is gone (410). null: it was not."),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  })
  .meta({ id: "NotificationChannel" });
export type Channel = z.infer<typeof Channel>;

export const ChannelCreated = Channel.extend({
  secret: z
    .string()
    .nullable()
    .optional()
    .describe(
      "For a webhook, shown once: the secret that signs its messages (standardwebhooks.com). A replay under the same Idempotency-Key omits it.",
    ),
}).meta({ id: "NotificationChannelCreated" });
export type ChannelCreated = z.infer<typeof ChannelCreated>;

export const ChannelRemoved = z.object({ id: z.string(), deleted: z.literal(true) });
export type ChannelRemoved = z.infer<typeof ChannelRemoved>;

export const Delivery = z
  .object({
    id: z.string(),
    channelId: z.string(),
    kind: z.enum([...notificationKinds, "test"]),
    resourceId: z.string().nullable(),
    subject: z.string(),
    text: z.string(),
    status: z.enum(deliveryStatuses),
    attempts: z.number().int(),
    httpStatus: z.number().int().nullable().describe("The receiver's last response; null: none, or a mail."),
    error: z.string().nullable(),
    nextAttemptAt: Timestamp.nullable(),
    createdAt: Timestamp,
    finishedAt: Timestamp.nullable(),
  })
  .meta({ id: "NotificationDelivery" });
export type Delivery = z.infer<typeof Delivery>;

export const DeliveryListQuery = listQuery("delivery").extend({
  channelId: idFilter("channel").describe("Only those of this channel."),
  status: z.enum(deliveryStatuses).optional().describe("Only those with this status."),
});
export type DeliveryListQuery = z.infer<typeof DeliveryListQuery>;
