import type { ChatReply, ConversationWithMessages } from "../../protocol/api/chat.ts";
import type { LogLine } from "../../protocol/api/deployments.ts";
import type { DevicePolled } from "../../protocol/api/device.ts";
import type { AgentLogLine, StreamTarget } from "../../protocol/agent/messages.ts";
import type { Answer, Question } from "../../protocol/agent/running.ts";
import type { Id } from "../../protocol/ids.ts";
import type { AccountPlan, AccountRole } from "../../protocol/states.ts";
import type { Actor, Credential, Followed, Reader } from "../actor.ts";
import type { AppError } from "../domain/app-error.ts";
import type { Lease, Offer } from "../domain/lease.ts";
import type { Window } from "../domain/sliding-window.ts";

// What the Durable Objects answer to the rest of the Worker, so that bindings and contexts import none of their classes.

/** A request to a `HostLink` for a stream, which no request from outside can be: the object sees their own paths. */
export const streamAddress = "https://host-link/stream";
export const streamHeader = "X-Berth-Stream";
export type StreamOpening = { target: StreamTarget; reader: Reader };

export interface HostLinkRpc extends Rpc.DurableObjectBranded {
  fetch(request: Request): Promise<Response>;
  wake(): Promise<void>;
  deliver(offer: Offer): Promise<void>;
  remind(): Promise<void>;
  revise(lease: Lease, verdict: "drop" | "cancel"): Promise<void>;
  letGo(id: Id<"site" | "database">): Promise<void>;
  certify(): Promise<void>;
  tellPeers(): Promise<void>;
  disconnect(): Promise<void>;
  ask(question: Question): Promise<Answer>;
  follow(
    question: Followed,
    reader: Reader,
  ): Promise<ReadableStream<Uint8Array> | Extract<Answer, { kind: "refused" }>>;
}

export type KeyVerdict = {
  actor: (Actor & { type: "key" }) | null;
  admitted: boolean;
  limit: number;
  left: number;
  resetSeconds: number;
  windowSeconds: number;
};

export interface Guarding {
  check(keyHash: string): Promise<KeyVerdict>;
  revoke(): Promise<void>;
  forget(): Promise<void>;
}
export interface KeyGuardRpc extends Rpc.DurableObjectBranded, Guarding {}

export interface DeploymentLogRpc extends Rpc.DurableObjectBranded {
  append(attempt: number, firstSeq: number, lines: AgentLogLine[]): Promise<number>;
  finish(text: string): Promise<void>;
  read(afterSeq: number, limit: number): Promise<LogLine[]>;
  follow(afterSeq: number, reader: Reader, isOver?: boolean): Promise<ReadableStream<Uint8Array> | null>;
  remove(): Promise<void>;
}

export interface AccountEventsRpc extends Rpc.DurableObjectBranded {
  wake(): Promise<void>;
  follow(afterSeq: number | null, reader: Reader): Promise<ReadableStream<Uint8Array> | null>;
}

/** `mcp`: its key is good for `/mcp` alone. */
export type DeviceOrigin = "device" | "mcp";
export type DeviceRequest = { clientName: string; address: string; startedAt: string; origin: DeviceOrigin };

/** The account and session that approved a device. */
export type DeviceApproval = { accountId: Id<"account">; sessionId: Id<"session"> };

export interface DeviceCodeRpc extends Rpc.DurableObjectBranded {
  start(deviceHash: string, clientName: string, address: string, origin: DeviceOrigin): Promise<boolean>;
  describe(): Promise<DeviceRequest | null>;
  decide(approval: DeviceApproval, approved: boolean): Promise<boolean>;
  poll(deviceHash: string): Promise<DevicePolled | number | null>;
}

/** `isLate`: a use after the first is written down within a second and no answer waits for that, so a crash may forget it. */
export type CountedWindow = Window & { isLate?: boolean };

export interface RateLimitRpc extends Rpc.DurableObjectBranded {
  take(window: CountedWindow): Promise<number>;
  giveBack(): Promise<void>;
}

/** A tool call that a person is asked to confirm on a page; of this account alone. */
export type PendingCall = {
  accountId: Id<"account">;
  /** What asked for it. */
  credential: Credential;
  step: { tool: string; input: unknown; summary: string; version: string | null };
  expiresAtMs: number;
};

export interface PendingCallRpc extends Rpc.DurableObjectBranded {
  keep(call: PendingCall): Promise<void>;
  read(accountId: Id<"account">): Promise<PendingCall | null>;
  take(accountId: Id<"account">, as: "taken" | "declined"): Promise<PendingCall | null>;
  settle(outcome: string): Promise<void>;
  outcome(accountId: Id<"account">): Promise<string | null>;
}

/** On whose behalf the assistant acts. */
type Speaker = {
  accountId: Id<"account">;
  role: AccountRole;
  plan: AccountPlan;
  credential: Credential;
};
export type Sent = {
  message: string;
  confirm?: string | undefined;
  speaker: Speaker;
  conversationId: Id<"conversation">;
  /** The conversation begins with this message. */
  isNew: boolean;
  requestId: string | null;
};
/** An error cannot cross the call with its code. */
export type Refused = { refused: { code: AppError["code"]; extra: Record<string, unknown> } };

type Events = { events: ReadableStream<Uint8Array> };

export type History = Pick<ConversationWithMessages, "messages" | "pendingAction">;

export interface ConversationRpc extends Rpc.DurableObjectBranded {
  send(sent: Sent): Promise<{ reply: ChatReply } | Refused>;
  stream(sent: Sent): Promise<Events | Refused>;
  resume(accountId: string, afterSeq: number): Promise<Events | Refused>;
  history(accountId: string): Promise<History | Refused>;
  remove(): Promise<void>;
}
