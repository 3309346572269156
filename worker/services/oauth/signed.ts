import { jwtVerify, SignJWT } from "jose";
import * as z from "zod";
import { ClientMetadata, isSameRedirect } from "../../../protocol/api/oauth.ts";
import { idOf } from "../../../protocol/api/common.ts";
import { tokenKeys } from "../../config.ts";
import type { Ctx } from "../../ctx.ts";

/** What an approval grants. `keyId`: the key that its code becomes, once. */
const Grant = z.object({
  clientId: z.string(),
  clientName: z.string(),
  redirectUri: z.string(),
  challenge: z.string(),
  accountId: idOf("account"),
  sessionId: idOf("session"),
  keyId: idOf("key"),
});
type Grant = z.infer<typeof Grant>;

const codeLifeSeconds = 60;

/** Clients and codes are signed instead of stored: a registration, which anybody can make, costs no row. */
async function sign(
  ctx: Ctx,
  kind: "client" | "code",
  claims: object,
  lifeSeconds?: number,
): Promise<string> {
  const jwt = new SignJWT({ ...claims })
    .setProtectedHeader({ alg: "HS256", typ: kind })
    .setAudience(kind)
    .setIssuer(ctx.config.SITE_URL);
  const now = Math.floor(ctx.now().getTime() / 1000);
  if (lifeSeconds !== undefined) jwt.setExpirationTime(now + lifeSeconds);
  return jwt.sign(tokenKeys(ctx.config, "oauth")[0]);
}

async function read<Claims>(
  ctx: Ctx,
  kind: "client" | "code",
  token: string,
  schema: z.ZodType<Claims>,
): Promise<Claims | null> {
  for (const key of tokenKeys(ctx.config, "oauth")) {
    const found = await jwtVerify(token, key, {
      algorithms: ["HS256"],
      audience: kind,
      issuer: ctx.config.SITE_URL,
      currentDate: ctx.now(),
    }).catch(() => null);
    const claims = found && schema.safeParse(found.payload);
    if (claims?.success) return claims.data;
  }
  return null;
}

/** The id of a client that anybody describes (RFC 7591). */
export const registerClient = (ctx: Ctx, client: ClientMetadata): Promise<string> =>
  sign(ctx, "client", client);

/** null: it never registered here. */
export const clientById = (ctx: Ctx, id: string): Promise<ClientMetadata | null> =>
  read(ctx, "client", id, ClientMetadata);

/** The client, if this is one of its addresses. */
export async function clientOf(ctx: Ctx, id: string, redirectUri: string): Promise<ClientMetadata | null> {
  const client = await clientById(ctx, id);
  return client?.redirect_uris.some((one) => isSameRedirect(one, redirectUri)) ? client : null;
}

export const signGrant = (ctx: Ctx, grant: Grant): Promise<string> =>
  sign(ctx, "code", grant, codeLifeSeconds);

/** null: it is forged or too old. */
export const grantOf = (ctx: Ctx, code: string): Promise<Grant | null> => read(ctx, "code", code, Grant);
