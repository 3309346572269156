import { expect, it } from "vitest";
import type { ToolName } from "../../protocol/api/tools.ts";
import { contextOf } from "../../worker/compose.ts";
import { runTool } from "../../worker/assistant/run-tool.ts";
import { assistantActor, ownerOf } from "./assistant.ts";
import { account, api, bindings, createSite, readyAgent, runningSite } from "./service.ts";

const asked = async (key: string, tool: ToolName, input: object) =>
  runTool(
    contextOf(bindings, assistantActor(await ownerOf(key)), () => undefined),
    tool,
    input,
  );

it("nobody is asked to confirm what can only be refused", async () => {
  const key = await account();
  const site = await createSite(key, { name: "shop" });
  await api(key, "POST", "/databases", { name: "data", type: "postgresql" });
  const { siteId } = await runningSite(key, await readyAgent());
  const [only] = (await api<{ data: { id: string }[] }>(key, "GET", `/sites/${siteId}/deployments`)).body
    .data;
  const paid = (await api<{ data: { id: string }[] }>(key, "GET", "/invoices?status=paid")).body.data[0];
  await bindings.DB.prepare("UPDATE deployments SET status = 'FAILED' WHERE id = ?").bind(only?.id).run();
  for (const [tool, input, error] of [
    ["stop_site", { site: "shop" }, /is PENDING: there is nothing to stop/],
    ["stop_database", { db: "data" }, /is PENDING: there is nothing to stop/],
    ["restart_database", { db: "data" }, /is PENDING/],
    ["rollback_site", { site: "shop" }, /^shop cannot be rolled back to an earlier deployment/],
    ["rollback_site", { site: siteId, deployment: only?.id }, /cannot be rolled back to deployment 1/],
    ["cancel_invoice", { invoice: paid?.id }, /is paid: only an unpaid one/],
  ] as const)
    expect([tool, await asked(key, tool, input)]).toMatchObject([
      tool,
      { status: "refused", code: "conflict", error: expect.stringMatching(error) },
    ]);
  expect(await asked(key, "stop_site", { site: siteId })).toMatchObject({ status: "asks" });
  expect(await asked(key, "cancel_invoice", { invoice: site.invoiceId })).toMatchObject({ status: "asks" });
});
