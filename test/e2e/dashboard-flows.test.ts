import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Site } from "../../protocol/api/sites.ts";
import { atPlainLog, launchBrowser, newPerson, signedIn } from "./browser.ts";
import {
  api,
  launch,
  local,
  plainServer,
  remove,
  Repository,
  request,
  serverSource,
  settled,
  until,
  type Files,
} from "./service.ts";

/** What people do on the dashboard, from the first click to the last. */
let browser: Browser;
const sites: string[] = [];
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  for (const id of sites) if ((await api("GET", `/sites/${id}`)).status === 200) await remove(id);
});

const app = (version: string): Files => ({
  ...plainServer(version),
  "server.js": `console.log("version ${version} starts");\n${serverSource(version)}`,
});

const siteNamed = async (name: string): Promise<Site> => {
  const { data } = (await api<{ data: Site[] }>("GET", "/sites?limit=100")).body;
  const found = data.find((site) => site.name === name);
  if (!found) throw new Error(`No site ${name}`);
  sites.push(found.id);
  return found;
};

describe.each([
  ["with a script", true],
  ["without a script", false],
])("a site, %s,", (_how, hasScript) => {
  let page: Page;
  let repository: Repository;
  let here: string;
  const name = `flow-${process.pid}-${hasScript ? "script" : "plain"}`;
  beforeAll(async () => {
    repository = new Repository(app("one"));
    ({ page } = await signedIn(browser, { javaScriptEnabled: hasScript }));
  });

  const go = (path: string) => page.goto(local.siteUrl + path);
  /** How the deployment that is open ends, as its page says by itself. */
  const outcome = async (): Promise<string> => {
    if (!hasScript) await atPlainLog(page);
    const word = page.locator("p.ended .dot, #outcome h1 .dot:not(.busy)").first();
    await word.waitFor({ timeout: 120_000 });
    return (await word.innerText()).trim();
  };

  it("is refused with what was typed kept, then created, paid and watched until it serves", async () => {
    await go("/sites/new");
    await page.fill("main [name=name]", name);
    await page.fill("main [name=githubUrl]", "nonsense");
    const create = page.locator("#total button[type=submit]");
    await create.click();
    await page.locator("[name=githubUrl][aria-invalid=true]").waitFor();
    expect(await page.inputValue("main [name=name]")).toBe(name);
    await page.fill("main [name=githubUrl]", repository.address);
    await create.click();
    await page.click('button:text-is("Pay $5.00")');
    await page.click('button:has-text("Test payment: pay")');
    // Straight to the build.
    await page.waitForURL(/\/deployments\/dep_/);
    const site = await siteNamed(name);
    here = `/sites/${site.id}`;
    expect(await outcome()).toBe("In service");
    const log = page.locator(hasScript ? ".log-view" : ".log");
    await log.getByText("Deployment is live.").waitFor();
  });

  it("gets a variable, which serves after a restart", async () => {
    await go(`${here}/variables`);
    await page.fill("#form-set [name=key]", "GREETING");
    await page.fill("#form-set [name=value]", "hello");
    if (hasScript) {
      await page.click('#form-set button:text-is("Add")');
      await page.click('.staged button:text-is("Save")');
    } else await page.locator("#form-set [data-saves] button").first().click();
    await page.locator("tr[data-key=GREETING]", { hasText: "not in service yet" }).waitFor();
    await page.click('#site-head button:has-text("Restart")');
    await page.locator("main [data-flash]", { hasText: "The restart has been asked for." }).waitFor();
    await settled(here.replace("/sites/", ""));
    await until(
      async () => {
        await go(`${here}/variables`);
        return page.locator("tr[data-key=GREETING]").innerText();
      },
      (row) => !row.includes("not in service yet"),
    );
  });

  it("fails with its reason while the version before serves on, is mended, and is rolled back", async () => {
    await go(`${here}/settings`);
    await page.fill("#form-run [name=startCommand]", "node missing.js");
    await page.click("#form-run button[type=submit]");
    await page.locator("main [data-flash]").waitFor();
    await page.click('#site-head button:has-text("Deploy")');
    expect(await outcome()).toBe("Failed");
    // Without a script, the page was written before the end was known.
    if (!hasScript) await page.reload();
    expect(await page.locator("#failure").innerText()).toMatch(/version #1 still serves/);
    await go(`${here}/settings`);
    await page.fill("#form-run [name=startCommand]", "");
    await page.click("#form-run button[type=submit]");
    await page.locator("main [data-flash]").waitFor();
    repository.commit(app("two"), "Mends");
    await page.click('#site-head button:has-text("Deploy")');
    expect(await outcome()).toBe("In service");
    await go(here);
    const address = (await page.locator("#site-head .copied a").innerText()).trim();
    expect((await request(`http://${address}`)).text).toBe("version two");
    await page.click('main button:has-text("Roll back")');
    expect(await outcome()).toBe("In service");
    expect((await request(`http://${address}`)).text).toBe("version one");
  });

  it("shows what it writes, and what a domain needs", async () => {
    await go(`${here}/logs`);
    await page
      .locator(hasScript ? ".log-view" : ".log")
      .getByText("version one starts")
      .first()
      .waitFor();
    await go(`${here}/domains`);
    await page.fill("#form-add [name=domain]", `www.${name}.example.com`);
    await page.click('#form-add button:has-text("Add domain")');
    await page.locator("#domains", { hasText: `_berth-challenge.${name}.example.com` }).waitFor();
  });

  it("is deleted once its name is typed", async () => {
    await go(`${here}/settings`);
    await page.locator("#delete summary").click();
    await page.fill("#delete [name=confirm]", "another");
    await page.click(`#delete button:has-text("Delete")`);
    await page.locator("#delete [name=confirm][aria-invalid=true], #delete [data-reason]").first().waitFor();
    await page.fill("#delete [name=confirm]", name);
    await page.click(`#delete button:has-text("Delete")`);
    await until(
      async () => (await api("GET", here)).status,
      (status) => status === 404,
    );
  });
});

it("two tabs and a phone stay in step without a reload", async () => {
  const site = await launch({ githubUrl: new Repository(plainServer("one")).address });
  sites.push(site.id);
  const { context, page } = await signedIn(browser);
  const storageState = await context.storageState();
  const tab = await context.newPage();
  const phone = await (
    await browser.newContext({ storageState, viewport: { width: 390, height: 844 } })
  ).newPage();
  await page.goto(`${local.siteUrl}/sites/${site.id}`);
  await tab.goto(`${local.siteUrl}/sites`);
  await phone.goto(`${local.siteUrl}/sites/${site.id}`);
  const seen = async (word: string) => {
    for (const place of [
      tab.locator("#list tr", { hasText: site.name }).locator(".dot", { hasText: word }),
      phone.locator("#site-head h1 .dot", { hasText: word }),
      page.locator("#site-head h1 .dot", { hasText: word }),
    ])
      await place.waitFor({ timeout: 60_000 });
  };
  // A document that is loaded again has no such mark.
  for (const one of [tab, phone]) await one.evaluate("window.isTheSame = true");
  await page.click("#site-menu > summary");
  await page.click('#site-menu button:has-text("Stop")');
  await seen("Stopped");
  await phone.click('#site-head button:has-text("Start")');
  await seen("In service");
  for (const one of [tab, phone]) expect(await one.evaluate("window.isTheSame")).toBe(true);
  await context.close();
  await phone.context().close();
});

it("what a form led to is not overwritten by a late answer for the page before", async () => {
  const { context, page } = await signedIn(browser, {}, await newPerson(browser, "Late"));
  // Only this test has the page read again.
  await page.route("**/api/v1/events*", (route) => route.abort());
  await page.goto(`${local.siteUrl}/billing`);
  const [asked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await page.route("**/billing", async (route) => {
    if (route.request().method() !== "GET") return route.continue();
    const response = await route.fetch();
    asked.resolve();
    await released.promise;
    await route.fulfill({ response });
  });
  await page.evaluate("document.dispatchEvent(new Event('berth:refresh'))");
  await asked.promise;
  await page.locator('#credits button:has-text("Buy for $")').first().click();
  await page.waitForURL(/\/invoice\//);
  const isReadAgain = page.waitForRequest((request) => /\/invoice\//.test(request.url()));
  released.resolve();
  await isReadAgain;
  expect(await page.title()).toMatch(/^Invoice/);
  await context.close();
});

it("a page is asked for while its link is pressed, and again where it is opened only later or a form came between", async () => {
  const { page } = await signedIn(browser);
  await page.goto(`${local.siteUrl}/account`);
  const asked: string[] = [];
  const client = await page.context().newCDPSession(page);
  await client.send("Network.enable");
  client.on("Network.requestWillBeSent", ({ request: { url, headers } }) => {
    if (headers["Sec-Purpose"] === "prefetch") asked.push(new URL(url).pathname);
  });
  const keys = page.locator('.tabs a[href="/account/keys"]');
  const press = async (): Promise<void> => {
    const box = await keys.boundingBox();
    await page.mouse.move((box?.x ?? 0) + 5, (box?.y ?? 0) + 5);
    await page.mouse.down();
  };
  const leave = async (): Promise<void> => {
    await page.mouse.move(0, 0);
    await page.mouse.up();
  };
  const cameBy = () => page.evaluate<string>('performance.getEntriesByType("navigation")[0].deliveryType');
  await press();
  await until(
    async () => asked,
    (paths) => paths.includes("/account/keys"),
  );
  await page.mouse.up();
  await page.waitForURL(/keys/);
  expect(await cameBy()).toBe("navigational-prefetch");
  // Pressed, but not opened before something has changed.
  await page.goto(`${local.siteUrl}/account`);
  await press();
  await until(
    async () => asked,
    (paths) => paths.length === 2,
  );
  await leave();
  await page.fill("#form-name [name=name]", "Demo");
  await page.click("#form-name button");
  await page.locator("main [data-flash]").waitFor();
  await page.locator('.tabs a[href="/account/keys"]').focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/keys/);
  expect(await cameBy()).toBe("");
});

it("a link to a part of the page leads there without loading it again, and the way back is kept", async () => {
  const { page } = await signedIn(browser);
  await page.goto(`${local.siteUrl}/account`);
  await page.goto(`${local.siteUrl}/docs`);
  await page.evaluate("window.isTheSame = true");
  await page.locator(".topics a").first().click();
  await page.waitForURL(/docs#/);
  await page.goBack();
  await page.waitForURL(/docs$/);
  expect(await page.evaluate("window.isTheSame")).toBe(true);
  await page.goBack();
  await page.locator("#form-name").waitFor();
});

it("a session that ends while somebody types loses nothing", async () => {
  const { context, page } = await signedIn(browser);
  await page.goto(`${local.siteUrl}/sites/new`);
  const text = "FIRST=a long value\nSECOND=another";
  await page.fill("main [name=githubUrl]", "git.invalid/owner/repository");
  await page.fill("main [name=variables]", text);
  const cookies = await context.cookies();
  await context.clearCookies();
  await page.click("#total button[type=submit]");
  await page.locator("[role=alert]", { hasText: "You are signed out" }).waitFor();
  expect(await page.inputValue("main [name=variables]")).toBe(text);
  await context.addCookies(cookies);
  await page.click("#total button[type=submit]");
  // It was sent again as it was: the repository cannot be reached, and the text is still there.
  await page.locator("#found", { hasText: "git.invalid" }).waitFor();
  expect(await page.inputValue("main [name=variables]")).toBe(text);
  await context.close();
});

it("what sticks to the edges leaves room for a page at 400 %, and what is chosen is seen in the reader's own few colours", async () => {
  const { context, page } = await signedIn(browser, { viewport: { width: 320, height: 256 } });
  const path = `${local.siteUrl}/sites/${local.sampleSite.id}`;
  const room = () =>
    page.evaluate<number>(`innerHeight - [...document.querySelectorAll("body *")]
      .filter((part) => ["fixed", "sticky"].includes(getComputedStyle(part).position))
      .reduce((sum, part) => sum + part.offsetHeight, 0)`);
  await page.goto(`${path}/newest-deployment`);
  expect(await room()).toBeGreaterThan(128);
  await page.goto(`${path}/variables`);
  await page.fill("#form-set [name=key]", "STAGED");
  await page.click('#form-set button:text-is("Add")');
  expect(await room()).toBeGreaterThan(128);
  await page.click(".staged [data-discard]");

  await page.emulateMedia({ forcedColors: "active" });
  await page.keyboard.press("Control+k");
  await page.locator("dialog.palette[open] li[aria-selected=true]").waitFor();
  const background = (which: string) =>
    page.evaluate<string>(
      `getComputedStyle(document.querySelector(".palette li[aria-selected=${which}] a")).backgroundColor`,
    );
  expect(await background("true")).not.toEqual(await background("false"));
  await context.close();
});

it("the way from signing in to a deployment is walked with the keyboard alone", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const { keyboard } = page;
  const name = `keys-${process.pid}`;
  const focused = (selector: string) =>
    page.evaluate<boolean>(`document.activeElement?.matches(${JSON.stringify(selector)}) ?? false`);
  /** Tab, as often as it takes. */
  const to = async (selector: string): Promise<void> => {
    await page.locator(selector).first().waitFor({ state: "attached" });
    for (let presses = 0; presses < 80; presses++) {
      if (await focused(selector)) return;
      await keyboard.press("Tab");
    }
    throw new Error(`Tab does not reach ${selector}`);
  };
  const jump = async (text: string, found: string): Promise<void> => {
    await keyboard.press("Control+k");
    await page.locator("dialog.palette[open]").waitFor();
    await keyboard.type(text);
    await page.locator("dialog.palette [aria-selected=true]", { hasText: found }).waitFor();
    await keyboard.press("Enter");
  };
  await page.goto(`${local.siteUrl}/sign-in`);
  await keyboard.press("Tab");
  expect(await focused(".skip")).toBe(true);
  await to("main [name=email]");
  await keyboard.type(local.email);
  await to("main [name=password]");
  await keyboard.type(local.password);
  await keyboard.press("Enter");
  await page.waitForURL((url) => url.pathname === "/");
  await jump("new si", "New site");
  await page.waitForURL(/\/sites\/new$/);
  await to("main [name=githubUrl]");
  await keyboard.type(new Repository(plainServer("one")).address);
  await to("main [name=name]");
  await keyboard.press("Control+a");
  await keyboard.type(name);
  await to("#total button[type=submit]");
  await keyboard.press("Enter");
  await page.waitForURL(/\/invoice\//);
  await to("main button.primary");
  await keyboard.press("Enter");
  await page.locator("h1", { hasText: "Test payment" }).waitFor();
  await to("main button.primary");
  await keyboard.press("Enter");
  await page.waitForURL(/\/deployments\/dep_/);
  const site = await siteNamed(name);
  await settled(site.id);

  await jump(name, name);
  await page.waitForURL(new RegExp(`/sites/${site.id}`));
  await to(`.tabs a[href$="/variables"]`);
  await keyboard.press("Enter");
  await page.waitForURL(/\/variables$/);
  await to("#form-set [name=key]");
  await keyboard.type("GREETING");
  await keyboard.press("Tab");
  await keyboard.type("hello");
  await to("#form-set [data-saves] button");
  await keyboard.press("Enter");
  await to(".staged button:not([data-discard])");
  await keyboard.press("Enter");
  await page.locator("[data-flash]", { hasText: "Saved." }).waitFor();
  // What was done is read at once: the notice has the focus.
  expect(await focused("[data-flash]")).toBe(true);

  await page.goto(`${local.siteUrl}/sites/${site.id}`);
  await to("#site-menu > summary");
  await keyboard.press("Enter");
  await page.locator("#site-menu[open]").waitFor();
  await keyboard.press("Escape");
  expect(await focused("#site-menu > summary")).toBe(true);
  await keyboard.press("Control+k");
  await page.locator("dialog.palette[open]").waitFor();
  await keyboard.press("Escape");
  expect(await focused("#site-menu > summary")).toBe(true);
  await page.keyboard.press("Shift+Tab");
  await to("#site-head button.primary");
  await keyboard.press("Enter");
  await page.waitForURL(/\/deployments\/dep_/);
  await page.locator("#outcome h1 .dot:not(.busy)").waitFor({ timeout: 120_000 });
  await page.locator("body > [role=status]", { hasText: /#\d+ *In service/ }).waitFor({ state: "attached" });
  // A key within its time, although that of an earlier g is over.
  await page.clock.install();
  for (const key of ["g", "x"]) await keyboard.press(key);
  await page.clock.fastForward(1400);
  await keyboard.press("g");
  await page.clock.fastForward(200);
  await keyboard.press("s");
  await page.waitForURL(/\/sites$/);
  await context.close();
});
