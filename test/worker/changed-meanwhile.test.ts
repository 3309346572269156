import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ToolName } from "../../protocol/api/tools.ts";
import { contextOf } from "../../worker/compose.ts";
import { say, scripted, use, withoutChatLimit } from "./assistant.ts";
import { api, bindings, createSite, operator } from "./service.ts";
import { answering, argumentsAbout, recordOf, wholeAccount } from "./whole-account.ts";

withoutChatLimit();

let account: Awaited<ReturnType<typeof wholeAccount>>;
let args: Record<ToolName, Record<string, unknown>>;
beforeAll(async () => {
  account = await wholeAccount(true);
  await api(await operator(), "POST", "/credits/grants", { accountId: account.accountId, amount: 1000 });
  answering(account.host);
  args = argumentsAbout(account.ids);
});
afterAll(() => account.host.close());

const change = async (method: "POST" | "PATCH" | "DELETE", path: string, body?: object) => {
  const { status } = await api(account.key, method, path, body);
  if (status > 299) throw new Error(`${method} ${path} answered ${status}`);
};
const ofSite = (path: string) => `/sites/${account.ids.site}${path}`;
const ofDatabase = (path: string) => `/databases/${account.ids.db}${path}`;

/** A backup that is there, of the database or of the site's volume. */
async function aBackup(of: "database" | "volume"): Promise<string> {
  const id = contextOf(bindings, { type: "system" }, () => undefined).newId("backup");
  const subject = of === "database" ? account.ids.db : `${account.ids.site}/data`;
  await bindings.DB.prepare(
    `INSERT INTO backups (id, database_id, account_id, status, "trigger", name, database_name, type, image, pack_id, created_at)
      VALUES (?, ?, ?, 'VERIFIED', 'api', 'whole', '', ?, '', '', 0)`,
  )
    .bind(id, subject, account.accountId, of === "database" ? "postgresql" : "volume")
    .run();
  return id;
}

const now = (status: string) =>
  bindings.DB.prepare("UPDATE backups SET status = ? WHERE id = ?").bind(status, account.ids.backup).run();

describe("what the person was asked to confirm is not done", () => {
  it.each<[tool: ToolName, what: string, meanwhile: () => Promise<unknown>]>([
    ["restore_backup", "the backup is no longer held to be verified", () => now("STORED")],
    ["delete_backup", "it was verified", () => now("VERIFIED")],
    [
      "delete_database",
      "another site was linked",
      async () => {
        const { siteId } = await createSite(account.key);
        await change("POST", ofDatabase("/links"), { siteId });
      },
    ],
    ["delete_database", "a newer backup was made", () => aBackup("database")],
    [
      "delete_database",
      "its last backup was deleted",
      () =>
        bindings.DB.prepare("UPDATE backups SET removed_at = 1 WHERE database_id = ?")
          .bind(account.ids.db)
          .run(),
    ],
    ["delete_site", "a domain was added", () => change("PATCH", ofSite(""), { domain: "late.example.org" })],
    ["delete_site", "a backup of its volume was made", () => aBackup("volume")],
    [
      "delete_site",
      "a database was unlinked",
      () => change("DELETE", ofDatabase(`/links?siteId=${account.ids.site}`)),
    ],
    [
      "delete_env_vars",
      "a value was changed",
      () => change("PATCH", ofSite(""), { envVariables: [{ key: "PLAIN", value: "new" }] }),
    ],
    [
      "delete_env_vars",
      "a secret was changed",
      () => change("PATCH", ofSite(""), { envVariables: [{ key: "SECRET", value: "new" }] }),
    ],
    [
      "remove_domain",
      "it was removed and added again",
      async () => {
        await change("DELETE", ofSite(`/domains/${account.ids.domain}`));
        await change("POST", ofSite("/domains"), { domain: account.ids.domain });
      },
    ],
    ["delete_volume", "a backup of it was made", () => aBackup("volume")],
  ])("by %s once %s", async (tool, _what, meanwhile) => {
    scripted(use(tool, args[tool]), { text: "Shall I?" });
    const { conversationId, pendingAction } = (await say(account.key, `Use ${tool}`)).body;
    expect(pendingAction?.tool).toBe(tool);
    await meanwhile();
    const before = await recordOf([account.accountId, ...Object.values(account.ids)]);
    scripted({ text: "It has changed." });
    const { status, body } = await say(account.key, "yes", { conversationId });
    expect([status, body.toolCalls]).toEqual([200, [{ tool, ok: false }]]);
    expect(await recordOf([account.accountId, ...Object.values(account.ids)])).toEqual(before);
  });
});
