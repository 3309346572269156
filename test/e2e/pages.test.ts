import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  api,
  createSite,
  local,
  plainServer,
  Repository,
  request,
  stateDirectory,
  until,
} from "./service.ts";

/** The pages in a real browser, which sends what no test client thinks of: origins, cookies, referrers. */
let browser: Browser;
let page: Page;
beforeAll(async () => {
  browser = await chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
    ],
  });
  page = await browser.newPage();
  page.setDefaultTimeout(20_000);
});
afterAll(() => browser.close());

const email = `ada-${process.pid}@example.com`;
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

/** The first such link in a mail to the person. */
async function mailedLink(pattern: RegExp): Promise<string> {
  const folder = join(stateDirectory, "mail");
  const mails = () =>
    readdirSync(folder).map(
      (name) => JSON.parse(readFileSync(join(folder, name), "utf8")) as { to: string[]; text: string },
    );
  const links = await until(
    () => mails().flatMap(({ to, text }) => (to[0] === email ? (pattern.exec(text) ?? []) : [])),
    (found) => found.length > 0,
  );
  return links[0] ?? "";
}

it("a person signs up, makes a key that works, and changes the password", async () => {
  await go("/");
  await page.click("text=Create an account");
  expect(path()).toBe("/sign-up");
  await fill({ name: "Ada", email, password: first }, "Create account");
  expect(await page.locator("[role=status]").innerText()).toContain(email);
  await page.goto(await mailedLink(/https?:\S+verify-email\S+/));
  expect(path()).toBe("/confirmed");
  expect(await page.locator("[role=status]").innerText()).toContain("confirmed");
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
  expect(await page.locator("[role=status]").innerText()).toContain("changed");
  await page.click(".top .menu > summary");
  await page.click("text=Sign out");
  await page.waitForURL(/\/sign-in$/);
});

it("a forgotten password is replaced by the mailed link", async () => {
  await go("/sign-in");
  await page.click("text=Forgot your password?");
  await fill({ email }, "Send me a link");
  await page.goto(await mailedLink(/https?:\S+reset-password\S+/));
  await fill({ password: third }, "Save password");
  expect(path()).toBe("/sign-in");
  await fill({ email, password: second }, "Sign in");
  expect(await page.locator("[role=alert]").innerText()).toContain("is wrong");
  await fill({ email, password: third }, "Sign in");
  expect(path()).toBe("/");
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

it("a site is created, watched, mended, rolled back and deleted on its pages", async () => {
  const repository = new Repository(plainServer("one"));
  await go("/sign-in");
  await fill({ email: local.email, password: local.password }, "Sign in");
  const name = `paged-${process.pid}`;
  await go("/sites/new");
  await page.fill("main [name=name]", name);
  await page.fill("main [name=githubUrl]", `https://${repository.address}`);
  await page.click('button:has-text("Create and pay")');
  await page.click('button:text-is("Pay $5.00")');
  await page.click('button:has-text("Test payment: pay")');
  await page.waitForURL(/\/invoice\/.*returned=1/);
  const { data } = (await api<{ data: { id: string; name: string }[] }>("GET", "/sites")).body;
  const here = `/sites/${data.find((site) => site.name === name)?.id ?? ""}`;
  // A deployment has more time than a page. Its page says by itself how it ended.
  const ended = async () => {
    await page.locator("#outcome h1 .dot:not(.busy)").waitFor({ timeout: 120_000 });
    return (await page.locator("#outcome h1 .dot").innerText()).trim();
  };
  await page.click('a:has-text("Watch it being built")');
  await page.waitForURL(`**${here}/deployments`);
  await page.click('a:has-text("#1")');
  expect(await ended()).toBe("In service");
  await page.locator(".log-state", { hasText: "complete" }).waitFor();
  expect(await page.locator(".log-view").innerText()).toContain("Deployment is live.");
  expect(await overflowOnPhone(page)).toBe(0);

  repository.commit({ Dockerfile: "FROM node:24-bookworm-slim\nRUN echo no compiler; exit 7\n" }, "Breaks");
  await go(here);
  await page.click('#site-head button:has-text("Deploy")');
  expect(await ended()).toBe("Failed");
  expect(await page.locator("#failure").innerText()).toMatch(
    /version #1 still serves[^]*The build failed[^]*exited with code 7/,
  );
  expect(await overflowOnPhone(page)).toBe(0);

  repository.commit(plainServer("two"), "Mends");
  await go(here);
  await page.click('#site-head button:has-text("Deploy")');
  expect(await ended()).toBe("In service");
  await go(here);
  const address = (await page.locator("#site-head .copied a").innerText()).trim();
  expect((await request(`http://${address}`)).text).toBe("version two");
  await page.click('button:has-text("Roll back")');
  expect(await ended()).toBe("In service");
  expect((await request(`http://${address}`)).text).toBe("version one");

  await go(`${here}/variables`);
  await page.fill("#form-many [name=file]", "GREETING=hello\nSECOND=2");
  await page.click('#form-many button:has-text("Add all")');
  expect(await page.locator(".staged strong").innerText()).toBe("2 changes");
  await page.click('.staged button:text-is("Save")');
  await page.locator('tr[data-key=SECOND]:has-text("not in service yet")').waitFor();

  await go(here);
  await page.click("#site-menu > summary");
  await page.click('#site-menu button:has-text("Stop")');
  // The page looks again by itself.
  await page.locator("#site-head h1 .dot", { hasText: "Stopped" }).waitFor({ timeout: 60_000 });
  await go(`${here}/settings`);
  await page.locator("#delete summary").click();
  await page.fill("#delete [name=confirm]", name);
  await page.click(`#delete button:has-text("Delete ${name}")`);
  await until(
    async () => (await api("GET", here)).status,
    (status) => status === 404,
  );
});

it("a site is created, paid and watched to its end without a script", async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const plain = await context.newPage();
  plain.setDefaultTimeout(120_000);
  await plain.goto(`${local.siteUrl}/sign-in`);
  await plain.fill("main [name=email]", local.email);
  await plain.fill("main [name=password]", local.password);
  await plain.click('main button:has-text("Sign in")');
  await plain.goto(`${local.siteUrl}/sites/new`);
  await plain.fill("main [name=name]", `plain-${process.pid}`);
  await plain.fill("main [name=githubUrl]", new Repository(plainServer("plain")).address);
  await plain.click('main button:has-text("Create site and go to the payment")');
  await plain.click('main button:has-text("Pay $5.00")');
  await plain.click('main button:has-text("Test payment: pay")');
  expect(await plain.locator("h1").innerText()).toMatch(/^Invoice \d+/);
  await plain.click('a:has-text("Watch it being built")');
  await plain.waitForURL(/\/sites\/site_\w+\/deployments$/);
  const [siteId] = /site_\w+/.exec(plain.url()) ?? [];
  await plain.click('a:has-text("#1")');
  await plain.waitForURL(/plain=1/);
  await plain.locator(".ended", { hasText: "In service" }).waitFor();
  expect(await plain.locator(".log").innerText()).toMatch(/^Fetching [^]*\nDeployment is live\.\n$/);
  await context.close();
  await api("DELETE", `/sites/${siteId}`);
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

it("what is not there says so on a page", async () => {
  const answer = await go("/invoice/inv_unknown");
  expect([answer?.status(), await page.locator("h1").innerText()]).toEqual([404, "Not found"]);
});
