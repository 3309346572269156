import * as z from "zod";
import { text, Timestamp } from "./common.ts";

export const ChatRequest = z
  .strictObject({
    message: text.min(1).max(8000),
    conversationId: text.min(1).max(100).optional(),
    confirm: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe("Id of a pending action that this message confirms."),
  })
  .meta({ id: "ChatRequest" });

export const ChatReply = z
  .object({
    message: z.string(),
    conversationId: z.string(),
    balance: z.number(),
    creditsUsed: z.number(),
    toolCalls: z.array(z.object({ tool: z.string(), ok: z.boolean() })),
    pendingAction: z
      .object({ id: z.string(), tool: z.string(), summary: z.string(), expiresAt: Timestamp })
      .nullable(),
  })
  .meta({ id: "ChatReply" });
