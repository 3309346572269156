import type { Context } from "hono";
import { getCookie } from "hono/cookie";
import * as z from "zod";
import { entryOperations } from "../../protocol/api/entry-operations.ts";
import type { Operation } from "../../protocol/api/operations.ts";
import { EmailChange, PasswordResetRequest, SignUp } from "../../protocol/api/sign-in.ts";
import { errorCatalogue } from "../../protocol/errors.ts";
import { sessionCookie, signedSessionToken, type WithPassword } from "../adapters/auth.ts";
import { canMail } from "../adapters/mail.ts";
import type { AppEnv } from "../app-env.ts";
import { authOf } from "../compose.ts";
import { configOf } from "../config.ts";
import { batch } from "../db/batch.ts";
import { AppError } from "../domain/app-error.ts";
import { refusalBy } from "../domain/parsed.ts";
import { Backlog } from "../domain/backlog.ts";
import { logError } from "../log-error.ts";
import { sentenceOf } from "../pages/kit/setting-labels.ts";
import { endSession } from "../services/accounts/end-session.ts";
import { noteSignInChange, type SignInChange } from "../services/accounts/note-sign-in-change.ts";
import { claimCode, hasSecondFactor, requireSecondFactor } from "../services/accounts/second-factor.ts";
import { fromJson, textOf } from "./body.ts";
import { contextFor } from "./context.ts";
import { isKnownDevice, knownDeviceCookie } from "./known-device.ts";
import { clientAddress, countedAddress, giveBack, takeFrom } from "./limit.ts";
import { keysRevoked } from "../services/keys/revoke-all.ts";
import { takesSignUps } from "../services/settings/read.ts";
import { notOurPage, sessionActor } from "./session.ts";

/** Endpoints below {site_url}/api/auth where an attacker would guess repeatedly. */
const guarded: Record<string, "signIn" | "secondStep" | "signUp" | "mailed"> = {
  "/sign-in/email": "signIn",
  "/two-factor/verify-totp": "secondStep",
  "/two-factor/verify-backup-code": "secondStep",
  "/sign-up/email": "signUp",
  "/request-password-reset": "mailed",
  "/send-verification-email": "mailed",
  "/change-email": "mailed",
};

/** Changes by a signed-in person that take a code of the second step, where it is on. */
const takesCode = new Set([
  "/two-factor/disable",
  "/two-factor/generate-backup-codes",
  "/change-email",
  "/link-social",
  "/unlink-account",
]);

/** Changes by a signed-in person that are recorded and mailed; a code proves that the second step is set up. */
const noted: Record<string, SignInChange> = {
  "/two-factor/disable": "turnOffTwoFactor",
  "/two-factor/generate-backup-codes": "renewRecoveryCodes",
  "/two-factor/verify-totp": "turnOnTwoFactor",
};

/** Requests of a signed-in person who types the password again. */
const repeatsPassword = new Set([
  "/change-password",
  "/two-factor/enable",
  "/two-factor/disable",
  "/two-factor/generate-backup-codes",
]);

/** Each request hashes a password, which takes 100 ms of CPU. */
const hashing = new Set(["/sign-in/email", "/sign-up/email", "/reset-password", ...repeatsPassword]);

/** Five seconds of hashing, including the pauses. */
const hashes = new Backlog(200, 5000);

/** The bodies that we describe. better-auth itself takes names and addresses of any length. */
const bodies = new Map([
  ...Object.values<Operation>(entryOperations).map(
    ({ method, path, body }) => [`${method.toUpperCase()} ${path}`, body] as const,
  ),
  ["POST /api/auth/change-email", EmailChange],
]);

/**
 * Answered immediately and identically whether or not the address has an account; the owner of the address learns the
 * rest by mail. better-auth rejects invalid input before any lookup.
 */
const answeredByMail: Record<string, z.ZodObject> = {
  "/sign-up/email": SignUp,
  "/request-password-reset": PasswordResetRequest,
  "/send-verification-email": PasswordResetRequest,
};

const WithCode = z.looseObject({ code: z.string().max(100) });
const WithEmail = z.looseObject({ email: z.string().max(254) });

const sentIn = (request: Request): Promise<unknown> =>
  textOf(request.clone())
    .then(fromJson)
    .catch(() => null);

/** None is the same as an empty object. @throws AppError unsupported_media_type, invalid_request */
async function bodyOf(request: Request): Promise<unknown> {
  const text = await textOf(request.clone());
  if (text === "") return {};
  if (!isJson(request)) throw new AppError("unsupported_media_type");
  return fromJson(text);
}

const codeSentIn = async (request: Request): Promise<string> =>
  WithCode.safeParse(await sentIn(request)).data?.code ?? "";

async function emailIn(request: Request): Promise<string> {
  const body = WithEmail.safeParse(await sentIn(request));
  return body.success ? body.data.email.trim().toLowerCase() : "";
}

/**
 * Passes one request to better-auth with rate limits, and converts its errors to our format. @throws AppError
 * rate_limited
 */
export async function toAuth(c: Context<AppEnv>, sent: Request): Promise<Response> {
  const request = new Request(sent, { headers: withPlainCookies(sent) });
  const path = new URL(request.url).pathname.slice("/api/auth".length);
  return takesCode.has(path)
    ? withCode(c, request, (changed) => passOn(c, request, path, changed))
    : passOn(c, request, path, null);
}

/** @param changed whose change it is, where it takes a code */
async function passOn(
  c: Context<AppEnv>,
  request: Request,
  path: string,
  changed: string | null,
): Promise<Response> {
  const limit = guarded[path];
  const address = countedAddress(c);
  const email = limit === "signIn" || limit === "mailed" ? await emailIn(request) : null;
  const who =
    path === "/change-email" && changed !== null ? changed : email === null ? address : `${email} ${address}`;
  if (hashing.has(path)) {
    await takeFrom(c, "passwords", address);
    const known = email === null ? await signedInBy(c, path) : knownHere(c, email);
    if (!hashes.admits(Date.now(), { address, known }))
      throw new AppError("rate_limited", { retryAfterSeconds: 5 });
  }
  if (limit) await takeFrom(c, limit, who);
  const described = bodies.get(`${request.method} /api/auth${path}`);
  if (described) {
    const body = described.safeParse(await bodyOf(request));
    if (!body.success) return refused(body.error);
    const headers = new Headers(request.headers);
    headers.set("Content-Type", "application/json");
    request = new Request(request, { method: "POST", headers, body: JSON.stringify(body.data) });
  }
  const code = path === "/two-factor/verify-totp" ? await codeSentIn(request) : "";
  const quiet = await answeredByMailOnly(c, path, request);
  if (quiet) return quiet;
  const note = await noteFor(c, path);
  const response = await (await authOf(c.env)).handler(request, await passwordNote(c, path, request));
  // Successful sign-ins are not limited.
  if ((limit === "signIn" || limit === "secondStep") && response.ok) await giveBack(c, limit, who);
  if (response.status >= 400) return inOurShape(await asUnknown(response));
  if (path === "/two-factor/verify-totp" && !(await isFirstUse(c, code, response)))
    return inOurShape(Response.json({ message: "Invalid code", code: "INVALID_CODE" }, { status: 401 }));
  await note?.();
  if (request.method === "GET" && (await asksForCode(response))) return toSecondStep(response);
  const shown = await withoutTokens(response);
  if (limit !== "signIn" || email === null) return shown;
  const remembered = new Response(shown.body, shown);
  remembered.headers.append("Set-Cookie", knownDeviceCookie(c, email));
  return remembered;
}

/** Has better-auth do what an address's mailed link is for; false: it does not accept the link. Nobody is signed in. */
export async function confirmByLink(c: Context<AppEnv>, token: string): Promise<boolean> {
  const { ok } = await (await authOf(c.env)).confirmAddress(token, withPlainCookies(c.req.raw));
  return ok;
}

/** RFC 6265, section 4.1.1, without quotes. */
const plainCookie = /^([\w!#$%&'*.^`|~+-]+)=[!#-+\--:<-[\]-~]*$/;

/**
 * Only cookies that we and better-auth read alike, each once: what we have checked of a session must be true of the one that it
 * acts for. None says that a browser needs no second step: nobody could take that back.
 */
function withPlainCookies(request: Request): Headers {
  const kept = new Map<string, string>();
  for (const cookie of (request.headers.get("Cookie") ?? "").split(";").map((one) => one.trim())) {
    const name = plainCookie.exec(cookie)?.[1];
    if (name !== undefined && !kept.has(name) && !name.endsWith("trust_device")) kept.set(name, cookie);
  }
  const headers = new Headers(request.headers);
  // Without any, a request is a program's, of which no origin is asked.
  if (kept.size > 0) headers.set("Cookie", [...kept.values()].join("; "));
  else headers.delete("Cookie");
  return headers;
}

/** Whose password is checked, where it comes from a device that has proven to be theirs. */
const knownHere = (c: Context<AppEnv>, email: string): string | null =>
  isKnownDevice(c, email) ? email : null;

/** A code is used up only by what is done with it. @throws AppError unauthorized, and as `requireSecondFactor` */
async function withCode(
  c: Context<AppEnv>,
  request: Request,
  change: (accountId: string) => Promise<Response>,
): Promise<Response> {
  const actor = await sessionActor(c);
  if (!actor) throw new AppError("unauthorized");
  const { accountId } = actor;
  const giveBack = await requireSecondFactor(contextFor(c, actor), accountId, await codeSentIn(request));
  try {
    const answer = await change(accountId);
    if (answer.status >= 400) await giveBack();
    return answer;
  } catch (error) {
    if (error instanceof AppError) await giveBack();
    throw error;
  }
}

/** What is to be noted once it is done; asked before, as a change of the password ends the session. */
async function noteFor(c: Context<AppEnv>, path: string): Promise<(() => Promise<void>) | null> {
  const change = noted[path];
  const actor = change ? await sessionActor(c) : null;
  if (!change || !actor) return null;
  const ctx = contextFor(c, actor);
  if (change === "turnOnTwoFactor" && (await hasSecondFactor(ctx, actor.accountId))) return null;
  return async () => {
    await batch(ctx, noteSignInChange(ctx, actor.accountId, change, clientAddress(c)));
  };
}

/** Whether a reset of the password leaves the account's keys as they are: anyone who knew the old one may have created some. */
const keepsKeys = ({ url }: Request): boolean => new URL(url).searchParams.get("keepKeys") === "1";

/** What is written in the batch of a new password; a reset is by whoever has the mailed link. */
async function passwordNote(
  c: Context<AppEnv>,
  path: string,
  request: Request,
): Promise<WithPassword | undefined> {
  if (path === "/reset-password") {
    const ctx = contextFor(c, { type: "link" });
    return (accountId) => ({
      ...noteSignInChange(ctx, accountId, "resetPassword", clientAddress(c)),
      keys: keepsKeys(request) ? undefined : keysRevoked(ctx, accountId),
    });
  }
  const actor = path === "/change-password" ? await sessionActor(c) : null;
  if (!actor) return undefined;
  const ctx = contextFor(c, actor);
  return (accountId) => noteSignInChange(ctx, accountId, "changePassword", clientAddress(c));
}

const Verified = z.object({ token: z.string(), user: z.object({ id: z.string() }) });

/** better-auth accepts a code for as long as it is valid. The session that a used one has begun ends before anybody has its token. */
async function isFirstUse(c: Context<AppEnv>, code: string, response: Response): Promise<boolean> {
  const { token, user } = Verified.parse(await response.clone().json());
  const ctx = contextFor(c, { type: "link" });
  const isClaimed = await claimCode(ctx, user.id, code);
  if (!isClaimed) await endSession(ctx, token);
  return isClaimed;
}

const isJson = ({ headers }: Request | Response): boolean =>
  headers.get("Content-Type")?.startsWith("application/json") ?? false;

/** Signing in with GitHub is not over yet. */
const asksForCode = async (response: Response): Promise<boolean> =>
  isJson(response) &&
  // A redirect may have this content type and no body.
  TwoFactorAsked.safeParse(
    await response
      .clone()
      .json()
      .catch(() => null),
  ).success;
export const TwoFactorAsked = z.looseObject({ twoFactorRedirect: z.literal(true) });

function toSecondStep(response: Response): Response {
  const headers = new Headers({ Location: "/sign-in/second-step" });
  for (const cookie of response.headers.getSetCookie()) headers.append("Set-Cookie", cookie);
  return new Response(null, { status: 303, headers });
}

/** The session that changes its own password. */
async function signedInBy(c: Context<AppEnv>, path: string): Promise<string | null> {
  const cookie = repeatsPassword.has(path) && getCookie(c, sessionCookie(configOf(c.env)));
  return cookie ? signedSessionToken(configOf(c.env), cookie) : null;
}

/** Defers the work until after the answer, so that neither the answer nor its timing reveals which accounts exist. */
async function answeredByMailOnly(
  c: Context<AppEnv>,
  path: string,
  request: Request,
): Promise<Response | null> {
  const config = configOf(c.env);
  // Whether or not the address has an account, of which better-auth would tell its owner.
  if (path === "/sign-up/email" && !(await takesSignUps(contextFor(c, { type: "link" }))))
    return inOurShape(
      Response.json({ message: "Nobody can sign up here", code: "SIGN_UP_CLOSED" }, { status: 400 }),
    );
  const schema = canMail(config) ? answeredByMail[path] : undefined;
  const sent = schema?.safeParse(await sentIn(request));
  if (!sent?.success) return null;
  const origin = request.headers.get("Origin");
  if (origin !== null && origin !== config.SITE_URL) throw notOurPage(config);
  const body = JSON.stringify(sent.data);
  const auth = await authOf(c.env);
  const work = auth.handler(new Request(request.url, { method: "POST", headers: request.headers, body }));
  const onError = (error: unknown) => logError({ auth: path }, error);
  c.executionCtx.waitUntil(
    work.then(
      (done) => (done.status < 500 ? undefined : onError(new Error(`better-auth answered ${done.status}`))),
      onError,
    ),
  );
  return Response.json({ status: true });
}

/**
 * An account with an unconfirmed address is treated as nonexistent: signing in gets the same answer as for an unknown
 * one.
 */
async function asUnknown(response: Response): Promise<Response> {
  const answered = await response
    .clone()
    .json<{ code?: string }>()
    .catch((): { code?: string } => ({}));
  if (answered.code !== "EMAIL_NOT_VERIFIED") return response;
  const body = { message: "Invalid email or password", code: "INVALID_EMAIL_OR_PASSWORD" };
  return Response.json(body, { status: 401 });
}

const hideToken = (name: string, value: unknown) => (name === "token" ? undefined : value);

/** The session's token is only in its cookie, which scripts cannot read. */
async function withoutTokens(response: Response): Promise<Response> {
  // A redirect has the content type JSON but no body.
  if (!response.ok || !isJson(response)) return response;
  return new Response(JSON.stringify(await response.json(), hideToken), response);
}

/** Converts a form post to the request that better-auth's own client would send. */
export const formToAuth = (c: Context<AppEnv>, path: string, body: object): Promise<Response> => {
  const headers = new Headers({ "Content-Type": "application/json", Origin: configOf(c.env).SITE_URL });
  for (const name of ["Cookie", "User-Agent", "CF-Connecting-IP"]) {
    const value = c.req.header(name);
    if (value !== undefined) headers.set(name, value);
  }
  const url = `${configOf(c.env).SITE_URL}/api/auth${path}`;
  return toAuth(c, new Request(url, { method: "POST", headers, body: JSON.stringify(body) }));
};

/** In the shape of better-auth's own refusals, whose message our pages show. */
function refused(error: z.ZodError): Promise<Response> {
  const { issues } = refusalBy(error).extra as { issues: { path: string; message: string }[] };
  return inOurShape(Response.json({ message: issues.map(sentenceOf).join(" "), issues }, { status: 400 }));
}

async function inOurShape(response: Response): Promise<Response> {
  if (response.status >= 500)
    throw new Error(`better-auth answered ${response.status}: ${await response.text()}`);
  const answered = await response.json<{ message?: string }>().catch((): { message?: string } => ({}));
  // better-auth's own schemas name the field before each message: "[body.newEmail] …; [body.name] …".
  const fields = [...(answered.message ?? "").matchAll(/\[body\.?([\w.]*)\] (.*?)(?=; \[body|$)/g)];
  const issues = fields.map(([, path, text]) => ({ path, message: text }));
  if (issues.length > 0)
    answered.message = issues.map(({ path, message }) => `${path}: ${message}`).join("; ");
  const message = answered.message ?? "not accepted";
  // 422: the email address is already in use.
  const status = response.status === 422 ? errorCatalogue.conflict.status : response.status;
  const known = Object.values(errorCatalogue).find((one) => one.status === status);
  const headers = new Headers(response.headers);
  headers.set("Content-Type", "application/json");
  if (known === errorCatalogue.unauthorized) headers.set("WWW-Authenticate", "Bearer");
  const body = JSON.stringify({
    error: known?.text ?? "invalid_request",
    ...(known === errorCatalogue.conflict && { reason: message }),
    ...(known === errorCatalogue.invalid_request && {
      issues: issues.length > 0 ? issues : [{ path: "", message }],
    }),
    ...answered,
  });
  return new Response(body, { status, headers });
}
