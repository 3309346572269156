import { beforeAll, describe, expect, it } from "vitest";
import type { SearchResults } from "../../protocol/api/search.ts";
import { account, api, createSite, operator, readyAgent, run, runningSite } from "./service.ts";

let key: string;
let stranger: string;
let siteId: string;
let invoiceId: string;
let databaseId: string;

const found = async (by: string, q: string) => {
  const { status, body } = await api<SearchResults>(by, "GET", `/search?q=${encodeURIComponent(q)}`);
  expect([q, status]).toEqual([q, 200]);
  return body.data;
};
const idsOf = async (q: string, by = key) => (await found(by, q)).map(({ type, id }) => `${type} ${id}`);

beforeAll(async () => {
  [key, stranger] = [await account(), await account()];
  ({ siteId, invoiceId } = await runningSite(key, await readyAgent(), { name: "web-shop" }));
  await run(
    "UPDATE deployments SET commit_sha = ?, commit_message = 'Add the cart' WHERE site_id = ?",
    `c0ffee${"1".repeat(34)}`,
    siteId,
  );
  ({
    body: { databaseId },
  } = await api<{ databaseId: string }>(key, "POST", "/databases", { name: "shop-data", type: "redis" }));
  await api(key, "POST", `/sites/${siteId}/domains`, { domain: "shop.example.com" });
  await createSite(stranger, { name: "web-shop" });
});

describe("a search", () => {
  it("finds sites, databases, domains and invoices by a part of their names, whatever the case", async () => {
    const all = await found(key, "SHOP");
    expect(new Set(all.map(({ type }) => type))).toEqual(new Set(["site", "database", "domain", "invoice"]));
    expect(all).toContainEqual(
      expect.objectContaining({ type: "site", id: siteId, title: "web-shop", status: "RUNNING" }),
    );
    expect(all).toContainEqual(
      expect.objectContaining({ type: "database", id: databaseId, detail: "redis", status: "PENDING" }),
    );
    expect(all).toContainEqual(
      expect.objectContaining({ type: "domain", title: "shop.example.com", detail: "web-shop", siteId }),
    );
    expect(all).toContainEqual(expect.objectContaining({ type: "invoice", id: invoiceId, status: "paid" }));
  });

  it("finds a deployment by number, by site and number, and by the beginning of its commit", async () => {
    for (const q of ["1", "#1", "web-shop #1", "WEB#1", "c0ffee", "C0FFEE1"]) {
      const [one] = (await found(key, q)).filter(({ type }) => type === "deployment");
      expect([q, one]).toEqual([
        q,
        expect.objectContaining({
          title: "web-shop #1",
          detail: "c0ffee1 Add the cart",
          siteId,
          status: "LIVE",
        }),
      ]);
    }
    for (const q of ["#2", "other #1", "c0ffef", "c0f", "C0FFEEg"])
      expect([q, (await found(key, q)).filter(({ type }) => type === "deployment")]).toEqual([q, []]);
  });

  it("finds a resource by its id", async () => {
    expect(await idsOf(siteId)).toEqual([`site ${siteId}`]);
    expect(await idsOf(invoiceId)).toEqual([`invoice ${invoiceId}`]);
    expect(await idsOf(databaseId)).toEqual([`database ${databaseId}`]);
  });

  it("finds nothing of others: neither by name, number, commit nor id", async () => {
    for (const q of ["shop-data", "#1", "c0ffee", siteId, databaseId, invoiceId, "shop.example.com"])
      expect([q, await idsOf(q, stranger)]).toEqual([q, []]);
    expect((await found(stranger, "web-shop")).map(({ id }) => id)).not.toContain(siteId);
  });

  it("finds accounts and hosts for operators alone", async () => {
    const types = async (by: string, q: string) => (await found(by, q)).map(({ type }) => type);
    expect(await types(await operator(), "operator@example.com")).toEqual(["account"]);
    expect(await types(await operator(), "host-")).toContain("host");
    expect(await types(key, "operator@example.com")).toEqual([]);
    expect(await types(key, "host-")).toEqual([]);
  });

  it("puts the whole name first, then what begins so, and answers eight of a kind at most", async () => {
    const own = await account();
    for (const name of ["my-blog", "blog-2", "blog", "a-blog"]) await createSite(own, { name });
    const sites = (await found(own, "blog")).filter(({ type }) => type === "site");
    expect(sites.map(({ title }) => title)).toEqual(["blog", "blog-2", "a-blog", "my-blog"]);
    for (let number = 0; number < 8; number++) await createSite(own, { name: `blog-x${number}` });
    expect((await found(own, "blog")).filter(({ type }) => type === "site")).toHaveLength(8);
  });

  it("takes every text as text: wildcards and quotes find what contains them", async () => {
    for (const q of ["%", "_", "'", '"', "\\", "*", "' OR 1=1 --", "é", "💥"])
      expect([q, await idsOf(q)]).toEqual([q, []]);
    for (const q of ["", " ", "x".repeat(101), "a\0b"])
      expect((await api(key, "GET", `/search?q=${encodeURIComponent(q)}`)).status).toBe(400);
  });
});
