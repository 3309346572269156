import type { ChatReply } from "../../protocol/api/chat.ts";
import type { ToolName } from "../../protocol/api/tools.ts";
import { isYes } from "../../protocol/yes.ts";
import type { Ctx } from "../ctx.ts";

/** One destructive call with its arguments and consequence. */
export type PendingStep = { tool: ToolName; input: unknown; summary: string; version: string };

/** The action that awaits the person's confirmation. The conversation keeps it, so that no model can confirm it. */
export type PendingAction = { id: string; steps: PendingStep[]; expiresAtMs: number };

export const pendingForMs = 10 * 60_000;

/** The action that this message confirms, by its id or by a plain yes. */
export const agreedTo = (
  pending: PendingAction | undefined,
  { message, confirm }: { message: string; confirm?: string | undefined },
  nowMs: number,
): PendingAction | null => {
  if (!pending || pending.expiresAtMs <= nowMs) return null;
  if (confirm !== undefined) return confirm === pending.id ? pending : null;
  return isYes(message) ? pending : null;
};

/** 192 random bits: only who was told the id can name it. */
export const newPendingId = (ctx: Ctx): string => `cfm_${Buffer.from(ctx.random(24)).toString("base64url")}`;
export const isPendingId = (text: unknown): text is string =>
  typeof text === "string" && /^cfm_[\w-]{32}$/.test(text);

export const summaryOf = ({ steps }: PendingAction): string =>
  steps.length === 1
    ? (steps[0]?.summary ?? "")
    : steps.map(({ summary }, index) => `${index + 1}. ${summary}`).join("\n");

/** As the person is asked to confirm it. */
export const shownPending = (pending: PendingAction): NonNullable<ChatReply["pendingAction"]> => ({
  id: pending.id,
  tool: pending.steps.map(({ tool }) => tool).join(", "),
  summary: summaryOf(pending),
  expiresAt: new Date(pending.expiresAtMs).toISOString(),
});
