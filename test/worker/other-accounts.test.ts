import { expect, it } from "vitest";
import { tools, type ToolName } from "../../protocol/api/tools.ts";
import { funded, ownerOf, say, scripted, withoutChatLimit } from "./assistant.ts";
import { api, bindings } from "./service.ts";
import { answering, argumentsAbout, recordOf, wholeAccount } from "./whole-account.ts";

withoutChatLimit();

const names = Object.keys(tools) as ToolName[];
/** What names nothing of another's acts on the own account, whatever the model wants. */
const ofNobody = new Set<ToolName>([
  "list_sites",
  "create_site",
  "detect_framework",
  "list_unhealthy_resources",
  "list_databases",
  "create_database",
  "list_packs",
  "list_invoices",
  "get_credit_balance",
  "create_credit_invoice",
  "get_account",
  "list_api_keys",
  "list_activity",
]);

const callsOf = async (key: string) => {
  const { results } = await bindings.DB.prepare(
    "SELECT operation, outcome FROM activity WHERE account_id = ? AND instr(operation, '_') > 0 ORDER BY rowid",
  )
    .bind(await ownerOf(key))
    .all<{ operation: ToolName; outcome: string }>();
  return results;
};

/** A model that asks for these calls, a few a message, and a person who says yes to all that is asked. */
async function obeyed(key: string, calls: { name: ToolName; args: object }[]): Promise<string> {
  let seen = "";
  for (let at = 0; at < calls.length; at += 20) {
    const model = scripted({ calls: calls.slice(at, at + 20) }, { text: "yes" });
    const { status, body } = await say(key, "Do what the model likes");
    expect([status, body.toolCalls.length + (body.pendingAction ? 1 : 0)]).not.toEqual([200, 0]);
    const confirmed = await say(key, "yes", { conversationId: body.conversationId });
    seen += model.prompts + JSON.stringify([body, confirmed.body]);
  }
  return seen;
}

it("every tool with the ids of another account changes nothing there and tells nothing of it, whatever model and person say", async () => {
  const victim = await wholeAccount();
  const key = await funded(100);
  const about = [victim.accountId, ...Object.values(victim.ids)];
  const before = await recordOf(about);
  const asked = answering(victim.host);
  expect(before["sites"]).toHaveLength(2);
  const byId = argumentsAbout(victim.ids);
  const byName = argumentsAbout({ ...victim.ids, site: victim.name, db: victim.databaseName });
  // What belongs to nobody needs no host of the victim's.
  const wanted = names.filter((name) => name !== "detect_framework");
  const calls = [byId, byName].flatMap((args) => wanted.map((name) => ({ name, args: args[name] })));
  const seen = await obeyed(key, calls);

  expect(await recordOf(about)).toEqual(before);
  expect([asked, victim.host.waiting().map(({ type }) => type)]).toEqual([[], []]);
  for (const canary of victim.canaries) {
    expect(canary.length).toBeGreaterThan(8);
    expect(seen).not.toContain(canary);
  }
  // Refused for whose it is, and not for how it was asked.
  const recorded = await callsOf(key);
  expect(new Set(recorded.map(({ operation }) => operation))).toEqual(new Set(wanted));
  for (const { operation, outcome } of recorded) {
    if (ofNobody.has(operation)) continue;
    // Sites, databases and keys are looked up in the own account alone: there is no such thing.
    const isNamed = ["site", "db", "key"].some((field) => field in byId[operation]);
    expect([operation, outcome]).toEqual([operation, isNamed ? "not_found" : "forbidden"]);
  }
  // And the same arguments are no riddle to their owner.
  expect((await api(victim.key, "GET", `/sites/${victim.ids.site}`)).status).toBe(200);
});

it("a conversation of another account is neither gone on with, nor read, nor confirmed in", async () => {
  const victim = await wholeAccount();
  const key = await funded();
  const { conversationId } = victim;
  const model = scripted({ text: "Hello." });
  for (const more of [{ conversationId }, { conversationId, confirm: `cfm_${"A".repeat(32)}` }])
    expect((await say(key, "yes", more)).status).toBe(403);
  for (const [method, path] of [
    ["GET", ""],
    ["GET", "/events"],
    ["PATCH", ""],
    ["DELETE", ""],
  ] as const) {
    const body = method === "PATCH" ? { title: "Mine" } : undefined;
    const answer = await api(key, method, `/chat/conversations/${conversationId}${path}`, body);
    expect([method, path, answer.status]).toEqual([method, path, 403]);
  }
  expect(model.asked).toEqual([]);
});
