import type { Context } from "hono";
import * as z from "zod";
import { errorCatalogue } from "../../protocol/errors.ts";
import { authOf } from "../adapters/auth.ts";
import type { AppEnv } from "../app-env.ts";
import { configOf } from "../env.ts";
import { countedAddress, giveBack, takeFrom } from "./limit.ts";

/** Below {site_url}/api/auth: what a forged attempt would try again and again. */
const guarded: Record<string, "signIn" | "signUp" | "mailed"> = {
  "/sign-in/email": "signIn",
  "/sign-up/email": "signUp",
  "/request-password-reset": "mailed",
  "/send-verification-email": "mailed",
};

const WithEmail = z.looseObject({ email: z.string().max(254) });

async function emailIn(request: Request): Promise<string> {
  const sent: unknown = await request
    .clone()
    .json()
    .catch(() => null);
  const body = WithEmail.safeParse(sent);
  return body.success ? body.data.email.trim().toLowerCase() : "";
}

/** One request to better-auth, limited, its refusals in our shape. @throws AppError rate_limited */
export async function toAuth(c: Context<AppEnv>, request: Request): Promise<Response> {
  const path = new URL(request.url).pathname.replace(/^\/api\/auth/, "");
  const limit = guarded[path];
  const address = countedAddress(c);
  const who = limit === undefined || limit === "signUp" ? address : `${await emailIn(request)} ${address}`;
  if (limit) await takeFrom(c, limit, who);
  const response = await (await authOf(c.env)).handler(request);
  // Whoever knows the password may sign in as often as they like.
  if (limit === "signIn" && response.ok) await giveBack(c, limit, who);
  return response.status >= 400 ? inOurShape(response) : withoutTokens(response);
}

const hideToken = (name: string, value: unknown) => (name === "token" ? undefined : value);

/** A session's token is in its cookie only, which no page's script can read. */
async function withoutTokens(response: Response): Promise<Response> {
  // A redirect calls itself JSON, and has no body.
  if (!response.ok || !response.headers.get("Content-Type")?.startsWith("application/json")) return response;
  const shown = new Response(JSON.stringify(await response.json(), hideToken), response);
  shown.headers.delete("Content-Length");
  return shown;
}

/** A form's request, as better-auth's own client would send it. */
export const formToAuth = (c: Context<AppEnv>, path: string, body: object): Promise<Response> => {
  const headers = new Headers({ "Content-Type": "application/json", Origin: configOf(c.env).SITE_URL });
  for (const name of ["Cookie", "User-Agent", "CF-Connecting-IP"]) {
    const value = c.req.header(name);
    if (value !== undefined) headers.set(name, value);
  }
  const url = `${configOf(c.env).SITE_URL}/api/auth${path}`;
  return toAuth(c, new Request(url, { method: "POST", headers, body: JSON.stringify(body) }));
};

async function inOurShape(response: Response): Promise<Response> {
  if (response.status >= 500)
    throw new Error(`better-auth answered ${response.status}: ${await response.text()}`);
  const told = await response.json<{ message?: string }>().catch(() => ({ message: undefined }));
  const message = told.message ?? "not accepted";
  // 422: somebody has this e-mail already.
  const status = response.status === 422 ? errorCatalogue.conflict.status : response.status;
  const known = Object.values(errorCatalogue).find((one) => one.status === status);
  const headers = new Headers(response.headers);
  headers.set("Content-Type", "application/json");
  headers.delete("Content-Length");
  if (known === errorCatalogue.unauthorized) headers.set("WWW-Authenticate", "Bearer");
  const body = JSON.stringify({
    error: known?.text ?? "invalid_request",
    ...(known === errorCatalogue.conflict && { reason: message }),
    ...(known === errorCatalogue.invalid_request && { issues: [{ path: "", message }] }),
    ...told,
  });
  return new Response(body, { status, headers });
}
