import * as z from "zod";
import { Timestamp } from "./common.ts";

/** Of better-auth's requests and answers below {site_url}/api/auth, what clients need. It validates, and may answer more. */
const email = z.email().max(254);
const password = z.string().min(12).max(200);

export const SignUp = z.object({ name: z.string().max(100), email, password });

export const SignIn = z.object({
  email,
  password: z.string().max(200),
  rememberMe: z
    .boolean()
    .optional()
    .describe("false: a browser forgets the session when it is closed. Left out: true."),
});

export const SignedInAccount = z
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
    .describe("A mail tells the rest, whether or not there is an account."),
  SignedIn,
]);

export const CurrentSession = z.looseObject({
  session: z.looseObject({ id: z.string(), expiresAt: Timestamp }),
  user: SignedInAccount,
});

export const PasswordResetRequest = z.object({ email });
export const PasswordReset = z.object({
  token: z.string().max(200).describe("As the mailed link has it."),
  newPassword: password,
});
/** As clients made for better-auth send them; sessions are read from the record each time. */
export const CurrentSessionQuery = z.object({
  disableCookieCache: z.string().optional(),
  disableRefresh: z.string().optional(),
});

export const PasswordResetQuery = z.object({
  keepKeys: z.literal("1").optional().describe("The account's API keys stay; otherwise they are revoked."),
});
