import { beforeAll, describe, expect, it } from "vitest";
import { account, api, call, createSite, operator, operatorCookie, siteUrl } from "./service.ts";
import { visitorWith, type Visitor } from "./pages.ts";
import { ownerOf } from "./assistant.ts";

const paths = [
  "",
  "/hosts",
  "/accounts",
  "/sites",
  "/sites?kind=databases",
  "/queue",
  "/money",
  "/system",
].map((tab) => `/operator${tab}`);
let me: Visitor;
beforeAll(async () => {
  await operator();
  me = visitorWith(await operatorCookie());
});

describe("the operator's console", () => {
  it("shows each of its pages", async () => {
    await createSite(await account(), { name: "somebody-elses" });
    for (const path of paths) expect([path, (await me.get(path)).status]).toEqual([path, 200]);
    expect((await me.get("/operator/sites?search=somebody-elses")).text).toContain("somebody-elses");
    expect((await me.get("/operator/queue?state=nonsense")).status).toBe(400);
  });

  it("is for operators: a person who is signed out is led to sign in", async () => {
    for (const path of paths) {
      const answer = await call(path, { redirect: "manual" });
      expect([path, answer.status]).toEqual([path, 303]);
    }
  });

  it("adds a host and shows its install command once; a wrong name keeps what was typed", async () => {
    const refused = await me.send("/operator/hosts", "create", { name: "Not A Name", region: "eu" });
    expect(refused.status).toBe(400);
    expect(refused.text).toMatch(/value="Not A Name"[^>]*aria-invalid="true"/);
    const added = await me.send("/operator/hosts", "create", { name: "by-page", region: "" });
    expect(added.said).toContain("The host is added");
    expect((await me.get("/operator/hosts")).text).toContain("Waiting for its agent");
  });

  it("gives credits to an account, suspends it with a reason and releases it", async () => {
    const key = await account();
    const id = await ownerOf(key);
    const page = `/operator/accounts/${id}`;
    expect((await me.send(page, "grant", { amount: "7" })).said).toContain("credits are given");
    expect((await me.send(page, "grant", { amount: "-7" })).status).toBe(400);
    expect((await me.send(page, "suspend", { reason: "Sends <spam>" })).said).toContain("suspended");
    expect((await me.get(page)).text).toContain("Sends &lt;spam&gt;");
    expect((await api(key, "GET", "/sites")).status).toBe(403);
    expect((await me.send(page, "release")).said).toContain("ended");
    expect((await api(key, "GET", "/credits")).body).toMatchObject({ balance: 7 });
  });

  it("checks the ledger and says what it found", async () => {
    expect((await me.send("/operator/money", "verify")).said).toBe("The ledger is consistent.");
  });

  it("changes nothing for a form of another site's", async () => {
    const answer = await call("/operator/hosts", {
      method: "POST",
      redirect: "manual",
      headers: { Origin: "https://evil.example", Cookie: await operatorCookie() },
      body: new URLSearchParams({ form: "create", name: "evil" }),
    });
    expect(answer.status).toBe(403);
    expect(siteUrl).not.toContain("evil");
  });
});
