import { beforeAll, describe, expect, it } from "vitest";
import { account, api, bindings, createSite, pay, uniqueName } from "./service.ts";
import { signedIn } from "./pages.ts";

type Browser = Awaited<ReturnType<typeof signedIn>>["visitor"];
let key: string;
let browser: Browser;
const names: string[] = [];
beforeAll(async () => {
  key = await account();
  for (const name of ["site-10", "site-9", "other"]) {
    names.push(uniqueName(name));
    await createSite(key, { name: names.at(-1) ?? "" });
  }
  browser = (await signedIn(key)).visitor;
});

/** In the order of the page. */
const shown = (text: string): string[] =>
  [...text.matchAll(/<a href="\/sites\/site_[^"]*"><strong>([^<]*)/g)].map(([, name = ""]) => name);
const heads = (text: string) =>
  [...text.matchAll(/<th([^>]*)><a class="sort" href="([^"]*)">([^<]*)/g)].map(
    ([, head = "", href, label]) => [label, /aria-sort="(\w+)"/.exec(head)?.[1] ?? "", href],
  );

describe("the list of sites", () => {
  it("is newest first, and offers each column by a link", async () => {
    const { text } = await browser.get("/sites");
    expect(shown(text)).toEqual(names.toReversed());
    expect(heads(text)).toEqual([
      ["Site", "", "/sites?sort=name"],
      ["State", "", "/sites?sort=state"],
      ["Source", "", "/sites?sort=source"],
      ["Created", "", "/sites?sort=created"],
    ]);
  });

  it("is put in order by a column and the other way round, numbers in names by their value, and says so", async () => {
    const [ten = "", nine = "", other = ""] = names;
    const up = await browser.get("/sites?sort=name");
    expect(shown(up.text)).toEqual([other, nine, ten]);
    expect(heads(up.text)[0]).toEqual(["Site", "ascending", "/sites?sort=-name"]);
    const down = await browser.get("/sites?sort=-name");
    expect(shown(down.text)).toEqual([ten, nine, other]);
    expect(heads(down.text)[0]).toEqual(["Site", "descending", "/sites?sort=name"]);
    expect(shown((await browser.get("/sites?sort=created")).text)).toEqual(names);
  });

  it("is as it was for an order that there is not", async () => {
    for (const sort of ["constructor", "--name", "", "name;x"])
      expect(shown((await browser.get(`/sites?sort=${sort}`)).text)).toEqual(names.toReversed());
  });

  it("is in one order over all of its pages", async () => {
    const big = await account();
    const { siteId } = await createSite(big, { name: uniqueName("many") });
    // Copies of one row: as many as two pages of the list and one more.
    const { results } = await bindings.DB.prepare("SELECT * FROM sites WHERE id = ?").bind(siteId).all();
    const [row = {}] = results;
    const columns = Object.keys(row);
    const insert = bindings.DB.prepare(
      `INSERT INTO sites (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
    );
    const made = Array.from({ length: 200 }, (_, index) => {
      const name = `copy-${index}`;
      const copy = {
        ...row,
        id: `${siteId.slice(0, -4)}${1000 + index}`,
        name,
        slug: uniqueName(name),
        webhook_hash: uniqueName(name),
      };
      return insert.bind(...columns.map((column) => (copy as Record<string, unknown>)[column]));
    });
    await bindings.DB.batch(made);
    const visitor = (await signedIn(big)).visitor;
    const found: string[] = [];
    for (let path: string | undefined = "/sites?sort=name"; path !== undefined;) {
      const { text } = await visitor.get(path);
      found.push(...shown(text));
      path = /<a href="([^"]*)">More sites/.exec(text)?.[1]?.replaceAll("&amp;", "&");
    }
    expect(found).toHaveLength(201);
    expect(found.slice(0, 200)).toEqual(Array.from({ length: 200 }, (_, index) => `copy-${index}`));
  });
});

it("what an account pays for is put in order by name and by when its term ends", async () => {
  const { siteId, invoiceToken } = await createSite(key, { name: uniqueName("a-paid") });
  await pay(invoiceToken);
  const paid = (await api<{ name: string }>(key, "GET", `/sites/${siteId}`)).body.name;
  const terms = async (sort: string) => {
    const { text } = await browser.get(`/billing?sort=${sort}`);
    return [...text.matchAll(/<td class="any-break"><a href="\/sites\/site_[^"]*">([^<]*)/g)].map(
      ([, name]) => name,
    );
  };
  expect((await terms("name"))[0]).toBe(paid);
  expect((await terms("-until"))[0]).toBe(paid);
  expect((await terms("until")).at(-1)).toBe(paid);
});
