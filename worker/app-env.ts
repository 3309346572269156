import type { OwnAccount } from "../protocol/api/accounts.ts";
import type { Brand } from "../protocol/api/settings.ts";
import type { Ctx } from "./ctx.ts";
import type { Env } from "./env.ts";
import type { Flash, Refused } from "./page-state.ts";

/** What Hono carries through a request. */
export type AppEnv = {
  Bindings: Env;
  Variables: {
    requestId: string;
    ctx: Ctx;
    /** The browser comes with a session's cookie of ours; whether it has ended is not looked up. */
    hasSession?: boolean;
    /** A POST that only reads: under an Idempotency-Key it is done again, and nothing of its answer is kept. */
    isRead?: boolean;
    /** Fields of the answer that are shown once: what is kept under an Idempotency-Key has none of them. */
    shownOnce?: readonly string[];
    /** Addresses of the pages' files by their plain names. */
    assets?: Readonly<Record<string, string>>;
    /** The installation's name, logo and links, for pages. */
    brand?: Brand;
    /** Whether pages offer to sign up. */
    signUp?: "open" | "closed";
    /** The page leads browsers without a script to itself with `?plain=1` at once. */
    leadsToPlain?: true;
    /** The signed-in person whose page this is. */
    viewer?: OwnAccount;
    /** What the form before this page did. */
    flash?: Flash;
    /** A form of this page that was just refused. */
    refused?: Refused;
  };
};
