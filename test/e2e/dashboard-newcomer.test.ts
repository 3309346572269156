import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Site } from "../../protocol/api/sites.ts";
import { launchBrowser } from "./browser.ts";
import { orderAndWatch, signUp } from "./newcomer.ts";
import { local, plainServer, Repository, until } from "./service.ts";

/** Somebody who has never seen the service, and opens no document. How long it takes: bench/first-site.ts. */
let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

describe.each([
  ["with a script", true],
  ["without a script", false],
])("a newcomer, %s,", (_how, hasScript) => {
  let page: Page;
  const shown: string[] = [];
  const step = (done: string) => void shown.push(done);
  beforeAll(async () => {
    const context = await browser.newContext({
      javaScriptEnabled: hasScript,
      // Sign-ups are limited per address.
      extraHTTPHeaders: { "CF-Connecting-IP": hasScript ? "198.51.100.11" : "198.51.100.12" },
    });
    page = await context.newPage();
    page.setDefaultTimeout(60_000);
  });
  afterAll(async () => {
    const headers = { Origin: local.siteUrl };
    const list = async () =>
      ((await (await page.request.get(`${local.baseUrl}/sites`)).json()) as { data: Site[] }).data;
    for (const { id } of await list()) await page.request.delete(`${local.baseUrl}/sites/${id}`, { headers });
    await until(list, (sites) => sites.length === 0);
  });

  it("finds the way from the first page to the sample online", async () => {
    const name = `Nia ${hasScript ? "Script" : "Plain"}`;
    const email = `nia-${process.pid}-${hasScript ? "script" : "plain"}@example.com`;
    await signUp(page, { name, email, password: "a long password" }, step);
    await page.click('main a:has-text("Try the sample")');
    expect(await orderAndWatch(page, step)).toContain("Notes");
    expect(shown.at(-1)).toBe("it is online");
  });

  it("puts their own repository online from the list of sites", async () => {
    await page.goto(`${local.siteUrl}/`);
    await page.click('main a:has-text("New site")');
    await page.fill("main [name=githubUrl]", new Repository(plainServer("mine")).address);
    expect(await orderAndWatch(page, step)).toBe("version mine");
  });
});
