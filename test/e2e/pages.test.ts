import { execFileSync } from "node:child_process";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchBrowser } from "./browser.ts";
import { api, createSite, local, mailedLink, request, until } from "./service.ts";

/** The pages in a real browser, which sends what no test client thinks of: origins, cookies, referrers. */
let browser: Browser;
/** The window that a person signed in to last. */
let page: Page;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

const [first, second, third] = ["the first password", "the second password", "the third password"];
const go = (path: string) => page.goto(local.siteUrl + path);
const path = () => new URL(page.url()).pathname;
const fill = async (fields: Record<string, string>, button: string) => {
  for (const [name, value] of Object.entries(fields)) await page.fill(`main [name=${name}]`, value);
  await page.click(`main button:has-text("${button}")`);
};

/** How far a page of a phone's width must be moved sideways to be read. */
async function overflowOnPhone(on: Page): Promise<number> {
  const before = on.viewportSize();
  await on.setViewportSize({ width: 390, height: 844 });
  const pixels = await on.evaluate<number>("document.documentElement.scrollWidth - window.innerWidth");
  if (before) await on.setViewportSize(before);
  return pixels;
}

describe.each([
  ["with a script", true],
  ["without a script", false],
])("a person, %s,", (_how, hasScript) => {
  const email = `ada-${process.pid}-${hasScript ? "script" : "plain"}@example.com`;
  beforeAll(async () => {
    // Passwords are limited per client address.
    const extraHTTPHeaders = { "CF-Connecting-IP": hasScript ? "198.51.100.1" : "198.51.100.2" };
    page = await (await browser.newContext({ javaScriptEnabled: hasScript, extraHTTPHeaders })).newPage();
    page.setDefaultTimeout(60_000);
  });

  it("signs up, makes a key that works, and changes the password", async () => {
    await go("/");
    await page.click("text=Create an account");
    expect(path()).toBe("/sign-up");
    await fill({ name: "Ada", email, password: first }, "Create account");
    expect(await page.locator("main [role=status]").innerText()).toContain(email);
    await page.goto(await mailedLink(email, /https?:\S+confirm-address\S+/));
    await page.click('main button:has-text("Confirm")');
    expect(path()).toBe("/confirmed");
    expect(await page.locator("main [role=status]").innerText()).toContain("confirmed");
    await fill({ email, password: first }, "Sign in");
    expect(path()).toBe("/");
    await go("/account/keys");
    await fill({ name: "Laptop" }, "Create key");
    const key = await page.locator("code.secret").innerText();
    const answer = await request(`${local.baseUrl}/sites`, { headers: { Authorization: `Bearer ${key}` } });
    expect(answer.status).toBe(200);
    await go("/account");
    await page.fill("[name=current]", first);
    await page.locator("[name=password]").fill(second);
    await page.click("text=Change password");
    expect(await page.locator("main [role=status]").innerText()).toContain("changed");
    await page.click(".top .menu > summary");
    await page.click("text=Sign out");
    await page.waitForURL(/\/sign-in$/);
  });

  it("replaces a forgotten password by the mailed link", async () => {
    await go("/sign-in");
    await page.click("text=Forgot your password?");
    await fill({ email }, "Send me a link");
    await page.goto(await mailedLink(email, /https?:\S+reset-password\S+/));
    await fill({ password: third }, "Save password");
    expect(path()).toBe("/sign-in");
    await fill({ email, password: second }, "Sign in");
    expect(await page.locator("[role=alert]").innerText()).toContain("is wrong");
    await fill({ email, password: third }, "Sign in");
    expect(path()).toBe("/");
  });
});

it("a device is approved by the person who sees its code, and gets its key", async () => {
  const start = await request(`${local.baseUrl}/auth/device`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ clientName: "CLI on <b>laptop</b>" }),
  });
  const codes = JSON.parse(start.text) as {
    device_code: string;
    user_code: string;
    verification_url: string;
  };
  await page.goto(codes.verification_url);
  expect(await page.locator(".code").innerText()).toBe(codes.user_code);
  expect(await page.locator("dl").innerText()).toContain("CLI on <b>laptop</b>");
  await page.click("button[value=approve]");
  const polled = await request(`${local.baseUrl}/auth/device-poll?code=${codes.device_code}`);
  expect(JSON.parse(polled.text)).toEqual({ status: "approved", token: expect.stringMatching(/^sk_/) });
});

it("a device whose code is typed, at the second try, and denied gets nothing", async () => {
  const start = await request(`${local.baseUrl}/auth/device`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ clientName: "CLI" }),
  });
  const codes = JSON.parse(start.text) as { device_code: string; user_code: string };
  await go("/device");
  await fill({ code: "AAAA-AAAA" }, "Continue");
  expect(await page.locator("[role=alert]").innerText()).toContain("No device is waiting with this code");
  await fill({ code: codes.user_code.toLowerCase() }, "Continue");
  expect(await page.locator(".code").innerText()).toBe(codes.user_code);
  await page.click("button[value=deny]");
  expect(await page.locator("h1").innerText()).toBe("The request was denied");
  const polled = await request(`${local.baseUrl}/auth/device-poll?code=${codes.device_code}`);
  expect(JSON.parse(polled.text)).not.toHaveProperty("token");
  await go(`/device?code=${codes.user_code}`);
  expect(await page.locator("[role=alert]").innerText()).toContain("No device is waiting with this code");
});

it("an invoice is shown and paid without signing in, and starts the site", async () => {
  const { siteId, invoiceToken } = await createSite({ githubUrl: "git.invalid/owner/repo" });
  const other = await browser.newPage();
  await other.goto(`${local.siteUrl}/invoice/${invoiceToken}`);
  expect(await other.locator("footer").innerText()).toContain("No money moves");
  expect(await overflowOnPhone(other)).toBe(0);
  const pdf = await other.request.get(`${local.siteUrl}/invoice/${invoiceToken}/pdf`);
  const printed = execFileSync("pdftotext", ["-layout", "-", "-"], {
    input: await pdf.body(),
    encoding: "utf8",
  });
  expect(printed).toMatch(/Invoice[^]*State +unpaid[^]*Site [^]*\$5\.00[^]*Total +\$5\.00/);
  await other.click('main button:has-text("Pay $5.00")');
  expect(await other.locator("h1").innerText()).toBe("Test payment");
  await other.click('main button:has-text("Test payment: pay")');
  await other.waitForURL(/\/invoice\/.*returned=1/);
  expect(await other.locator("h1 .dot").innerText()).toBe("Paid");
  await until(
    async () => (await api<{ status: string }>("GET", `/sites/${siteId}`)).body.status,
    (status) => status !== "PENDING",
  );
  await api("DELETE", `/sites/${siteId}`);
  await other.close();
});

it("the API's reference is read without a script", async () => {
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  await go("/docs");
  await page.locator("#createSite > summary").click();
  expect(await page.locator("#createSite").innerText()).toContain("githubUrl");
  expect(await overflowOnPhone(page)).toBe(0);
  expect(errors).toEqual([]);
});

it("the reference's search finds what a guide says and what restarts a site, and a link leads to what it hid", async () => {
  const reader = await browser.newPage();
  await reader.goto(`${local.siteUrl}/docs`);
  const search = async (words: string) => {
    await reader.fill("docs-search input", words);
    return reader.locator("[data-entry]:visible").evaluateAll((all) => all.map(({ id }) => id));
  };
  expect(await search("restart site")).toContain("patchSite");
  expect(await search("whoever has an invoice's address")).toEqual([""]);
  await reader.click('a[href="#listPacks"]');
  await reader.locator("#listPacks h4").first().waitFor();
  expect(await reader.inputValue("docs-search input")).toBe("");
  // The address of the page names it already.
  await search("whoever has an invoice's address");
  await reader.click('a[href="#listPacks"]');
  await reader.locator("#listPacks h4").first().waitFor();
  await reader.close();
});

it("what is not there says so on a page", async () => {
  const answer = await go("/invoice/inv_unknown");
  expect([answer?.status(), await page.locator("h1").innerText()]).toEqual([404, "Not found"]);
});
