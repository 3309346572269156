import { createHash } from "node:crypto";
import type { TokenRequest } from "../../../protocol/api/oauth.ts";
import type { Ctx } from "../../ctx.ts";
import { newApiKey } from "../keys/create.ts";
import { insertKey } from "../keys/insert.ts";
import { revokeDisputedKey } from "../keys/revoke.ts";
import { grantOf } from "./signed.ts";

/**
 * The key of an approved client, which works for `/mcp` alone. A code is good once: presented again, it revokes its key
 * (RFC 6749, section 4.1.2). null: nothing is granted.
 */
export async function exchangeCode(ctx: Ctx, asked: TokenRequest): Promise<string | null> {
  const grant = await grantOf(ctx, asked.code);
  const challenge = createHash("sha256").update(asked.code_verifier).digest("base64url");
  const isTheirs =
    grant?.clientId === asked.client_id &&
    grant.redirectUri === asked.redirect_uri &&
    grant.challenge === challenge;
  if (!grant || !isTheirs) return null;
  const { accountId, sessionId, keyId, clientName } = grant;
  const { key, row } = await newApiKey(ctx, accountId, clientName, "mcp");
  if (await insertKey(ctx, { ...row, id: keyId }, sessionId, { once: true })) return key;
  await revokeDisputedKey(ctx, keyId);
  return null;
}
