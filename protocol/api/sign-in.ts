import * as z from "zod";
import { nameOf, text, Timestamp } from "./common.ts";

/**
 * The parts of better-auth's requests and answers below {site_url}/api/auth that clients need. Nothing else of a request
 * reaches it, and it may answer more.
 */
const email = z.email().max(254);
const password = text
  .min(12, "The password must have at least 12 characters.")
  .max(200, "The password may have at most 200 characters.");

export const SignUp = z.object({ name: nameOf(100), email, password });

export const SignIn = z.object({
  email,
  password: z.string().max(200),
  rememberMe: z
    .boolean()
    .optional()
    .describe("false: the session ends when the browser is closed. Default: true."),
});

const SignedInAccount = z
  .looseObject({
    id: z.string(),
    email: z.string(),
    name: z.string(),
    emailVerified: z.boolean(),
    createdAt: Timestamp,
  })
  .meta({ id: "SignedInAccount" });

export const SignedIn = z.looseObject({ user: SignedInAccount });

export const SignedUp = z.union([
  z
    .object({ status: z.literal(true) })
    .describe("The next step is sent by email, whether or not the account already exists."),
  SignedIn,
]);

export const CurrentSession = z.looseObject({
  session: z.looseObject({ id: z.string(), expiresAt: Timestamp }),
  user: SignedInAccount,
});

/** Not in the API's document: it takes a browser. */
export const EmailChange = z.looseObject({ newEmail: email });

export const PasswordResetRequest = z.object({ email });
export const PasswordReset = z.object({
  token: z.string().max(200).describe("The token from the link in the email."),
  newPassword: password,
});
/** Accepted because better-auth's clients send them; sessions are always read from the database. */
export const CurrentSessionQuery = z.object({
  disableCookieCache: z.string().optional(),
  disableRefresh: z.string().optional(),
});

export const PasswordResetQuery = z.object({
  keepKeys: z.literal("1").optional().describe("Keep the account's API keys; otherwise they are revoked."),
});
