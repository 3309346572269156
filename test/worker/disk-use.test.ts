import { describe, expect, it } from "vitest";
import type { AccountDiskUse, DiskUse } from "../../protocol/api/disk.ts";
import type { Id } from "../../protocol/ids.ts";
import { answerNext, scene } from "./assistant.ts";
import { account, api, createSite, runningDatabase, runningSite } from "./service.ts";

describe("what sites and databases take of their hosts' disks", () => {
  it("is asked of each host once, of the account's own alone, and one that is silent withholds its own only", async () => {
    const { key, host } = await scene();
    const { siteId } = await runningSite(key, host, { name: "large" });
    const { databaseId } = await runningDatabase(key, host);
    const other = await account();
    const unpaid = await createSite(key, { name: "unpaid" });
    const taken = { writtenMb: 1, volumes: [], images: [], logMb: 2, buildCacheMb: null, countedMb: 7 };
    const strange = { id: (await createSite(other)).siteId as Id<"site">, ...taken };
    const asking = api<AccountDiskUse>(key, "GET", "/account/disk");
    const found = [{ id: siteId as Id<"site">, ...taken }, strange];
    expect(await answerNext(host, { kind: "disk", found })).toEqual({
      kind: "disk",
      ids: [siteId, databaseId],
    });
    expect((await asking).body).toMatchObject({
      data: [
        { kind: "site", id: siteId, countedMb: 7, limitMb: expect.any(Number) as number, notMeasured: null },
        { id: unpaid.siteId, countedMb: null, notMeasured: "It has not run yet." },
        { kind: "database", id: databaseId, countedMb: null, notMeasured: "Its host has no data for it." },
      ],
      truncated: false,
    });
    const refused = api<DiskUse>(key, "GET", `/databases/${databaseId}/disk`);
    await answerNext(host, { kind: "refused", error: "The host could not answer: try again." });
    expect((await refused).body).toMatchObject({
      countedMb: null,
      notMeasured: "The host could not answer: try again.",
    });
    for (const path of [`/sites/${siteId}/disk`, `/databases/${databaseId}/disk`])
      expect((await api(other, "GET", path)).status).toBe(403);
  });
});
