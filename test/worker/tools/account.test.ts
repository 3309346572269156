import { expect } from "vitest";
import { effectsOf, funded, ownerOf, useTool } from "../assistant.ts";
import { api, bindings, createSite } from "../service.ts";

/** Another key of the same account. */
async function secondKey(accountId: `acc_${string}`): Promise<{ key: string; id: string }> {
  const { contextOf } = await import("../../../worker/compose.ts");
  const { newApiKey } = await import("../../../worker/services/keys/create.ts");
  const { apiKeys } = await import("../../../worker/db/schema.ts");
  const ctx = contextOf(bindings, { type: "system" }, () => undefined);
  const { key, row } = await newApiKey(ctx, accountId, "laptop", "setup");
  await ctx.db.insert(apiKeys).values(row);
  return { key, id: row.id };
}

effectsOf("account", {
  get_account: [
    "shows what is owed, the limits in use and the terms",
    async () => {
      const key = await funded();
      const { invoiceId } = await createSite(key);
      const { result } = await useTool(key, "get_account", {});
      const { body } = await api<{ credits: { balance: number } }>(key, "GET", "/account");
      // The message that asks is not paid yet.
      expect(result).toEqual({ ...body, credits: { balance: body.credits.balance + 1 } });
      expect(result).toMatchObject({
        payment: { verified: false, unpaid: [{ id: invoiceId }] },
        limits: { awaitingPayment: { used: 1 } },
      });
    },
  ],
  list_api_keys: [
    "names the keys without the keys themselves",
    async () => {
      const key = await funded();
      const other = await secondKey(await ownerOf(key));
      const { result } = await useTool(key, "list_api_keys", {});
      expect(result).toMatchObject([{ id: other.id, name: "laptop" }, {}]);
      expect(JSON.stringify(result)).not.toContain(other.key);
    },
  ],
  revoke_api_key: [
    "makes the key useless after a yes",
    async () => {
      const key = await funded();
      const other = await secondKey(await ownerOf(key));
      expect((await api(other.key, "GET", "/sites")).status).toBe(200);
      const { asked } = await useTool(key, "revoke_api_key", { key: other.id });
      expect(asked).toContain("laptop");
      expect((await api(other.key, "GET", "/sites")).status).toBe(401);
      expect((await api(key, "GET", "/sites")).status).toBe(200);
      // What a key may not do, the assistant that it speaks to may not either.
      expect((await api(key, "POST", "/keys", { name: "Mine" })).status).toBe(403);
    },
  ],
  list_activity: [
    "shows who changed what",
    async () => {
      const key = await funded();
      const { siteId } = await createSite(key);
      const { result } = await useTool(key, "list_activity", { resource: siteId });
      expect(result).toMatchObject([{ operation: "createSite", actor: "key", outcome: "done" }]);
      const since = new Date(Date.now() + 60_000).toISOString();
      expect((await useTool(key, "list_activity", { resource: siteId, since })).result).toEqual([]);
    },
  ],
});
