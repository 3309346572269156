import { expect, it } from "vitest";
import { converse } from "../../worker/assistant/converse.ts";
import { contextOf } from "../../worker/compose.ts";
import { assistantActor, ownerOf } from "./assistant.ts";
import { account, api, bindings, createSite } from "./service.ts";

/** What the assistant without a model answers this key's account. */
async function answerTo(key: string, message: string): Promise<string> {
  const ctx = contextOf(bindings, assistantActor(await ownerOf(key)), () => undefined);
  const memory = { summary: null, history: [], groups: [], pending: undefined };
  const purse = { prices: { rates: null, least: 1 }, credits: 1 };
  const said = await converse(ctx, null, memory, { message }, purse, () => undefined);
  return [said.message, ...said.shown].join("\n");
}

const webhookOf = async (key: string, siteId: string) =>
  (await api<{ url: string }>(key, "GET", `/sites/${siteId}/webhook`)).body.url;

it("without a model, the deploy webhook of a site is shown to who asks for it in words", async () => {
  const key = await account();
  const shop = await createSite(key, { name: "shop" });
  const url = await webhookOf(key, shop.siteId);
  expect(await answerTo(key, "What is my site's deploy webhook?")).toContain(url);
  const blog = await createSite(key, { name: "my-blog" });
  expect(await answerTo(key, "Show me the webhook of My-Blog, please.")).toContain(
    await webhookOf(key, blog.siteId),
  );
  expect(await answerTo(key, `webhook: ${shop.siteId}`)).toContain(url);
  for (const unclear of ["Which webhook is there?", "webhooks of shop and my-blog"])
    expect(await answerTo(key, unclear)).toContain("get_deploy_webhook site=my-site");
  expect(await answerTo(key, "Rotate the webhook of shop")).toContain("There is no tool “Rotate”");
});

it("without a model, a site's status and what is to be paid are told to who asks in words", async () => {
  const key = await account();
  expect(await answerTo(key, "What is the status of shop?")).toContain("get_site site=my-site");
  const { invoiceToken } = await createSite(key, { name: "shop" });
  expect(await answerTo(key, "What is the deployment status of shop?")).toContain('"status": "PENDING"');
  expect(await answerTo(key, "Is there an invoice?")).toContain(`/invoice/${invoiceToken}`);
});

it("without a model, a site is found behind any number of others", async () => {
  const key = await account();
  const first = await createSite(key, { name: "shop" });
  await bindings.DB.prepare(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120)
     INSERT INTO sites (id, account_id, name, status, deploy_type, port, pack_id, billing_term, slug, webhook_hash, created_at, updated_at)
     SELECT 'site_z' || printf('%03d', i) || substr(id, 10), account_id, 'other-' || i, status, deploy_type, port, pack_id,
       billing_term, 'words-' || i, 'words-' || i, created_at, updated_at FROM sites, n WHERE id = ?`,
  )
    .bind(first.siteId)
    .run();
  expect(await answerTo(key, "the webhook of shop")).toContain(await webhookOf(key, first.siteId));
});
