import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { local, mailedLink } from "./service.ts";

const withoutExtras = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
];

/**
 * The browser that every test of pages uses. Hooks close nothing but this: its end closes all windows, while closing one by itself
 * waits for the browser without a limit.
 */
export const launchBrowser = (...args: string[]): Promise<Browser> =>
  chromium.launch({
    executablePath: "/usr/bin/chromium",
    timeout: 120_000,
    args: [...withoutExtras, ...args],
  });

/** Chromium without its windows, for half the work. It breaks off what it loads whenever an address of this machine changes, as Docker's do. */
export const launchHeadlessShell = (): Promise<Browser> =>
  chromium.launch({
    executablePath: "/usr/lib/chromium/chromium-headless-shell",
    timeout: 120_000,
    args: withoutExtras,
  });
export const brokenOff = "net::ERR_NETWORK_CHANGED";

/** Without a script, a page with a log leads on to its lines at once. To leave it before would cut off one of the two. */
export const atPlainLog = (page: Page): Promise<void> =>
  page.waitForURL(/[?&]plain=1/, { waitUntil: "commit", timeout: 60_000 });

type Options = NonNullable<Parameters<Browser["newContext"]>[0]>;

/** A window of somebody who has signed in through the page, by default the operator of the service. */
export async function signedIn(
  browser: Browser,
  options: Options = {},
  { email, password }: { email: string; password: string } = local,
  siteUrl = local.siteUrl,
): Promise<{ context: BrowserContext; page: Page }> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  await page.goto(`${siteUrl}/sign-in`);
  await page.fill("main [name=email]", email);
  await page.fill("main [name=password]", password);
  await page.click('main button:has-text("Sign in")');
  await page.waitForURL((url) => url.pathname !== "/sign-in");
  return { context, page };
}

/** Somebody who has just signed up and confirmed their address. */
export async function newPerson(
  browser: Browser,
  name: string,
): Promise<{ email: string; password: string }> {
  const person = { email: `${name.toLowerCase()}-${process.pid}@example.com`, password: "a long password" };
  const page = await browser.newPage();
  await page.goto(`${local.siteUrl}/sign-up`);
  await page.fill("main [name=name]", name);
  await page.fill("main [name=email]", person.email);
  await page.fill("main [name=password]", person.password);
  await page.click('main button:has-text("Create account")');
  await page.goto(await mailedLink(person.email, /https?:\S+verify-email\S+/));
  return person;
}
