import { Hono, type Context } from "hono";
import * as z from "zod";
import {
  AuthorizationRequest,
  ClientMetadata,
  DeviceAuthorizationRequest,
  deviceGrant,
  DeviceTokenRequest,
  TokenRequest,
} from "../../protocol/api/oauth.ts";
import type { AppEnv } from "../app-env.ts";
import { configOf } from "../config.ts";
import { formFields, limitBody } from "../middleware/body.ts";
import { contextFor } from "../middleware/context.ts";
import { clientAddress, limitAddress } from "../middleware/limit.ts";
import { signedIn } from "../middleware/signed-in.ts";
import { AuthorizedPage, AuthorizePage, WrongRequestPage } from "../pages/oauth.tsx";
import { userCodeOf } from "../domain/device-codes.ts";
import { hashFor, startMcpDevice } from "../services/device/start.ts";
import { exchangeCode } from "../services/oauth/exchange.ts";
import { clientById, clientOf, registerClient, signGrant } from "../services/oauth/signed.ts";
import { approvalRefusal, Decision } from "./approval.ts";
import { show } from "./show.ts";
import { noteViewer } from "./viewer.ts";

const scope = "mcp";

/**
 * Authorization server metadata (RFC 8414). better-auth has no provider of OAuth in this version, and what clients of MCP
 * need is small: public clients, codes with PKCE, keys that its owner revokes like any other.
 */
export const oauthMetadata = new Hono<AppEnv>().use(limitAddress).get("/oauth-authorization-server", (c) => {
  const { SITE_URL } = configOf(c.env);
  return c.json({
    issuer: SITE_URL,
    authorization_endpoint: `${SITE_URL}/oauth/authorize`,
    token_endpoint: `${SITE_URL}/oauth/token`,
    device_authorization_endpoint: `${SITE_URL}/oauth/device`,
    registration_endpoint: `${SITE_URL}/oauth/register`,
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: ["authorization_code", deviceGrant],
    code_challenge_methods_supported: ["S256"],
    token_endpoint_auth_methods_supported: ["none"],
    authorization_response_iss_parameter_supported: true,
    scopes_supported: [scope],
    service_documentation: `${SITE_URL}/docs`,
  });
});

const refusal = (c: Context<AppEnv>, error: string, why: string) =>
  c.json({ error, error_description: why }, 400);

/** What programs call: registration (RFC 7591) and the exchange of a code for a key (RFC 6749, 7636). */
export const oauth = new Hono<AppEnv>()
  .post("/register", limitAddress, limitBody, async (c) => {
    const client = ClientMetadata.safeParse(await c.req.json().catch(() => null));
    if (!client.success)
      return refusal(
        c,
        client.error.issues[0]?.path[0] === "redirect_uris"
          ? "invalid_redirect_uri"
          : "invalid_client_metadata",
        z.prettifyError(client.error),
      );
    const ctx = contextFor(c, { type: "link" });
    return c.json(
      {
        client_id: await registerClient(ctx, client.data),
        client_id_issued_at: Math.floor(ctx.now().getTime() / 1000),
        ...client.data,
        grant_types: ["authorization_code", deviceGrant],
        response_types: ["code"],
        token_endpoint_auth_method: "none",
      },
      201,
    );
  })
  .post("/device", limitAddress, limitBody, async (c) => {
    const asked = DeviceAuthorizationRequest.safeParse(await formFields(c.req));
    if (!asked.success) return refusal(c, "invalid_request", z.prettifyError(asked.error));
    if (!isOurs(c, asked.data.resource)) return refusal(c, "invalid_target", "The resource is not this one.");
    const ctx = contextFor(c, { type: "link", address: clientAddress(c) });
    const client = await clientById(ctx, asked.data.client_id);
    if (!client) return refusal(c, "invalid_client", "The client is not registered here.");
    const started = await startMcpDevice(ctx, asked.data.client_id, client.client_name);
    const { device_code, user_code, verification_url, expires_in, interval } = started;
    return c.json({
      device_code,
      user_code,
      verification_uri: `${ctx.config.SITE_URL}/device`,
      verification_uri_complete: verification_url,
      expires_in,
      interval,
    });
  })
  .post("/token", limitAddress, limitBody, async (c) => {
    const form: Record<string, unknown> = await formFields(c.req);
    if (form["grant_type"] === deviceGrant) return deviceToken(c, form);
    if (form["grant_type"] !== "authorization_code")
      return refusal(c, "unsupported_grant_type", `grant_type must be authorization_code or ${deviceGrant}.`);
    const asked = TokenRequest.safeParse(form);
    if (!asked.success) return refusal(c, "invalid_request", z.prettifyError(asked.error));
    const ctx = contextFor(c, { type: "link" });
    if (!isOurs(c, asked.data.resource)) return refusal(c, "invalid_target", "The resource is not this one.");
    const key = await exchangeCode(ctx, asked.data);
    if (key === null)
      return refusal(
        c,
        "invalid_grant",
        "The code was used, is older than a minute or belongs to another client, the approving session has ended, or the account has too many keys.",
      );
    return c.json({ access_token: key, token_type: "Bearer", scope });
  });

/** RFC 8628, section 3.5. */
async function deviceToken(c: Context<AppEnv>, form: Record<string, unknown>) {
  const asked = DeviceTokenRequest.safeParse(form);
  if (!asked.success) return refusal(c, "invalid_request", z.prettifyError(asked.error));
  if (!isOurs(c, asked.data.resource)) return refusal(c, "invalid_target", "The resource is not this one.");
  const { device_code: code, client_id: clientId } = asked.data;
  const userCode = userCodeOf(code);
  const ctx = contextFor(c, { type: "link" });
  const polled = userCode === null ? null : await ctx.devices.poll(userCode, hashFor(clientId, code));
  if (polled === null)
    return refusal(
      c,
      "invalid_grant",
      "The code was denied or used, is older than ten minutes or belongs to another client.",
    );
  if (typeof polled === "number") return refusal(c, "slow_down", `Ask again in ${polled} seconds.`);
  if (polled.status === "pending") return refusal(c, "authorization_pending", "Nobody has approved it yet.");
  return c.json({ access_token: polled.token, token_type: "Bearer", scope });
}

/** A client that names no resource means the only one. */
const isOurs = (c: Context<AppEnv>, resource: string | undefined): boolean =>
  resource === undefined || resource.replace(/\/$/, "") === `${configOf(c.env).SITE_URL}/mcp`;

type Asked = AuthorizationRequest & { clientName: string };

/** The request, if a registered client makes it; only then may its address be redirected to. */
async function requestIn(c: Context<AppEnv>): Promise<Asked | { wrong: string }> {
  const { client_id = "", redirect_uri = "", ...query } = c.req.query();
  const ctx = contextFor(c, { type: "link" });
  const found = URL.canParse(redirect_uri) ? await clientOf(ctx, client_id, redirect_uri) : null;
  if (!found) return { wrong: "It is unknown here, or did not register this address." };
  const asked = AuthorizationRequest.safeParse({ client_id, redirect_uri, ...query });
  if (!asked.success) return { wrong: z.prettifyError(asked.error) };
  if (!isOurs(c, asked.data.resource))
    return { wrong: `It asks for ${asked.data.resource}, which is not here.` };
  return { ...asked.data, clientName: found.client_name };
}

const asking = (c: Context<AppEnv>, asked: Asked, refusal: string | null) => {
  const viewer = c.get("viewer");
  return (
    <AuthorizePage
      clientName={asked.clientName}
      address={new URL(asked.redirect_uri)}
      action={`/oauth/authorize${new URL(c.req.url).search}`}
      email={viewer?.email}
      takesCode={viewer?.twoFactorEnabled === true}
      refusal={refusal}
    />
  );
};

/** A signed-in person allows a program to use the account's tools, or does not. */
export const oauthPage = new Hono<AppEnv>()
  .use(limitAddress, signedIn, noteViewer)
  .get("/", async (c) => {
    const asked = await requestIn(c);
    if ("wrong" in asked) return show(c, <WrongRequestPage why={asked.wrong} />, 400);
    return show(c, asking(c, asked, null));
  })
  .post("/", limitBody, async (c) => {
    const { ctx } = c.var;
    const { actor } = ctx;
    const asked = await requestIn(c);
    if ("wrong" in asked || actor.type !== "session")
      return show(c, <WrongRequestPage why={"wrong" in asked ? asked.wrong : "You cannot allow it."} />, 400);
    const form = Decision.safeParse(await formFields(c.req));
    const approved = form.data?.decision === "approve";
    const target = new URL(asked.redirect_uri);
    if (approved) {
      const refusal = await approvalRefusal(c, actor, form.data?.secondFactor ?? "");
      if (refusal !== null) return show(c, asking(c, asked, refusal), 400);
      const code = await signGrant(ctx, {
        clientId: asked.client_id,
        clientName: asked.clientName,
        redirectUri: asked.redirect_uri,
        challenge: asked.code_challenge,
        accountId: actor.accountId,
        sessionId: actor.sessionId,
        keyId: ctx.newId("key"),
      });
      target.searchParams.set("code", code);
    } else target.searchParams.set("error", "access_denied");
    if (asked.state !== undefined) target.searchParams.set("state", asked.state);
    target.searchParams.set("iss", ctx.config.SITE_URL);
    // Not a redirect: the page's policy lets a form lead to no other address.
    c.header("Refresh", `0; url=${target.href}`);
    return show(c, <AuthorizedPage allowed={approved} target={target.href} />);
  });
