import * as z from "zod";
import { nameOf } from "./common.ts";

/** Schemes that a browser acts on itself. */
const refusedSchemes = /^(javascript|data|vbscript|file|blob|about|ftp|ws|wss):$/;
const loopback = /^(localhost|127\.0\.0\.1|\[::1\])$/;

/** Where a client receives its code: https, its own computer, or an app's own scheme (RFC 8252). */
function isRedirect(uri: string): boolean {
  // `URL` drops blanks and control characters, all of which come before "!".
  if (!URL.canParse(uri) || /[^!-\uffff]|#/.test(uri)) return false;
  const { protocol, hostname, username, password } = new URL(uri);
  if (refusedSchemes.test(protocol) || username !== "" || password !== "") return false;
  return protocol !== "http:" || loopback.test(hostname);
}
export const RedirectUri = z
  .string()
  .max(500)
  .refine(
    isRedirect,
    "https, http on the own computer, or an app's own scheme, without a fragment or blanks",
  );

/** Whether it is the registered one; on the own computer the port is chosen anew each time (RFC 8252, section 7.3). */
export function isSameRedirect(registered: string, asked: string): boolean {
  if (registered === asked) return true;
  const [one, other] = [new URL(registered), new URL(asked)];
  if (one.protocol !== "http:" || !loopback.test(one.hostname)) return false;
  other.port = one.port;
  return one.href === other.href;
}

/** RFC 7591. What else a client says about itself is ignored. */
export const ClientMetadata = z.object({
  redirect_uris: z.array(RedirectUri).min(1).max(10),
  client_name: nameOf(100).default("A program"),
});
export type ClientMetadata = z.infer<typeof ClientMetadata>;

/** RFC 6749 section 4.1.1, RFC 7636, RFC 8707. */
export const AuthorizationRequest = z.object({
  response_type: z.literal("code"),
  client_id: z.string().max(8000),
  redirect_uri: RedirectUri,
  code_challenge: z.string().regex(/^[\w-]{43}$/),
  code_challenge_method: z.literal("S256"),
  state: z.string().max(2000).optional(),
  scope: z.string().max(500).optional(),
  resource: z.string().max(500).optional(),
});
export type AuthorizationRequest = z.infer<typeof AuthorizationRequest>;

export const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code";

/** RFC 8628, section 3.1. */
export const DeviceAuthorizationRequest = z.object({
  client_id: z.string().max(8000),
  scope: z.string().max(500).optional(),
  resource: z.string().max(500).optional(),
});

/** RFC 8628, section 3.4. */
export const DeviceTokenRequest = z.object({
  grant_type: z.literal(deviceGrant),
  device_code: z.string().max(200),
  client_id: z.string().max(8000),
  resource: z.string().max(500).optional(),
});
export type DeviceTokenRequest = z.infer<typeof DeviceTokenRequest>;

export const TokenRequest = z.object({
  grant_type: z.literal("authorization_code"),
  code: z.string().max(8000),
  redirect_uri: RedirectUri,
  client_id: z.string().max(8000),
  code_verifier: z.string().regex(/^[\w.~-]{43,128}$/),
  resource: z.string().max(500).optional(),
});
export type TokenRequest = z.infer<typeof TokenRequest>;
