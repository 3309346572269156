import type { ChatReply, ChatRequest } from "../../../protocol/api/chat.ts";
import type { Ctx, Sent } from "../../ctx.ts";
import { idIn } from "../owned.ts";
import { speakerOf } from "./speaker.ts";
import { unlessRefused } from "./unless-refused.ts";

/** A message to the assistant, and its whole answer. @throws AppError not_found, forbidden, payment_required */
export async function sendMessage(ctx: Ctx, asked: ChatRequest): Promise<ChatReply> {
  return unlessRefused(await ctx.conversations.send(sentBy(ctx, asked))).reply;
}

/** The same as server-sent events. */
export async function streamMessage(ctx: Ctx, asked: ChatRequest): Promise<ReadableStream<Uint8Array>> {
  return unlessRefused(await ctx.conversations.stream(sentBy(ctx, asked))).events;
}

function sentBy(ctx: Ctx, { message, confirm, conversationId }: ChatRequest): Sent {
  const speaker = speakerOf(ctx);
  return {
    message,
    confirm,
    conversationId:
      conversationId === undefined ? ctx.newId("conversation") : idIn("conversation", conversationId),
    isNew: conversationId === undefined,
    requestId: ctx.requestId,
    speaker,
  };
}
