import type { Id } from "../protocol/ids.ts";
import type { AccountPlan, AccountRole } from "../protocol/states.ts";

/** Who acts. Comes from the credential, never from the input. */
export type Actor =
  | ({
      type: "key";
      accountId: Id<"account">;
      role: AccountRole;
      plan: AccountPlan;
      keyId: Id<"key">;
      /** Set: it is accepted at `/mcp` alone. */
      forMcp?: true;
    } & Suspended)
  | ({
      type: "session";
      accountId: Id<"account">;
      role: AccountRole;
      plan: AccountPlan;
      sessionId: Id<"session">;
    } & Suspended)
  /** The model, on behalf of an account: it may do what the account's key may, operators' work excepted. */
  | {
      type: "assistant";
      accountId: Id<"account">;
      role: AccountRole;
      plan: AccountPlan;
      /** null: by a tool call outside a conversation (MCP). */
      conversationId: Id<"conversation"> | null;
      /** What the person came with. */
      credential: Credential;
    }
  /** An operator who sees an account as its owner does: reads only, without secrets, and each time on record. */
  | {
      type: "viewer";
      accountId: Id<"account">;
      role: "user";
      plan: AccountPlan;
      /** What the operator came with. */
      credential: Credential;
    }
  | { type: "host"; hostId: Id<"host"> }
  /** The bearer of a secret address (deploy webhook, invoice page), or nobody in particular. */
  | { type: "link"; address?: string }
  /** Timers and set-up. */
  | { type: "system" };

/** Why an operator has suspended the account; null or absent: it is not suspended. */
export type Suspended = { suspendedFor?: string | null };

/** What an account is opened with. */
export type Credential = Id<"key" | "session">;
/** Who follows a log, and what they came with. */
export type Reader = { accountId: Id<"account">; credential: Credential };

export type { Followed } from "../protocol/agent/running.ts";
