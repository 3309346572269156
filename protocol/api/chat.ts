import * as z from "zod";
import { maxMessageLength } from "../looking-at.ts";
import { text, Timestamp } from "./common.ts";

export const ChatRequest = z
  .strictObject({
    message: text.min(1).max(maxMessageLength),
    conversationId: text.min(1).max(100).optional(),
    confirm: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe("Id of a pending action that this message confirms."),
  })
  .meta({ id: "ChatRequest" });

export type ChatRequest = z.infer<typeof ChatRequest>;

const ToolCalls = z.array(z.object({ tool: z.string(), ok: z.boolean() }));

const PendingAction = z
  .object({ id: z.string(), tool: z.string(), summary: z.string(), expiresAt: Timestamp })
  .nullable();

export const ChatReply = z
  .object({
    message: z.string(),
    conversationId: z.string(),
    balance: z
      .number()
      .describe("After this message, as GET /credits shows it: what other messages hold is included."),
    creditsUsed: z.number(),
    toolCalls: ToolCalls,
    pendingAction: PendingAction,
  })
  .meta({ id: "ChatReply" });
export type ChatReply = z.infer<typeof ChatReply>;

const rate = z.number().nonnegative();

/** What a message to the assistant costs now, in credits. */
export const ChatPrice = z
  .object({
    model: z.string().nullable().describe("null: the assistant accepts commands only."),
    leastCredits: z.number().int(),
    mostCredits: z.number().int().describe("No message costs more."),
    neededCredits: z.number().int().describe("With fewer credits, a message is refused."),
    per1000Tokens: z
      .object({ prompt: rate, completion: rate })
      .nullable()
      .describe("null: each message costs `leastCredits`."),
    balance: z.number().describe("Credits that can be spent now."),
  })
  .meta({ id: "ChatPrice" });
export type ChatPrice = z.infer<typeof ChatPrice>;

export const Conversation = z
  .object({ id: z.string(), title: z.string(), createdAt: Timestamp, updatedAt: Timestamp })
  .meta({ id: "Conversation" });
export type Conversation = z.infer<typeof Conversation>;

const StoredMessage = z.object({
  role: z.enum(["user", "assistant"]),
  text: z.string(),
  at: Timestamp,
  toolCalls: ToolCalls.describe(
    "The tools that the assistant called. Its changes are also in the audit log.",
  ),
});
export type StoredMessage = z.infer<typeof StoredMessage>;

/** Secrets that an answer showed are not among its messages. */
export const ConversationWithMessages = Conversation.extend({
  messages: z.array(StoredMessage),
  pendingAction: PendingAction.describe("What the last answer asked to confirm, until it expires."),
}).meta({ id: "ConversationWithMessages" });
export type ConversationWithMessages = z.infer<typeof ConversationWithMessages>;

export const ConversationPatch = z.strictObject({ title: text.trim().min(1).max(80) });
export type ConversationPatch = z.infer<typeof ConversationPatch>;

export const ConversationDeleted = z.object({ id: z.string(), removed: z.literal(true) });
export type ConversationDeleted = z.infer<typeof ConversationDeleted>;
