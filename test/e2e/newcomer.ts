import type { Page } from "playwright-core";
import { local, mailedLink, request } from "./service.ts";

type Person = { name: string; email: string; password: string };
/** Called after each step, in the words of the person. */
type Step = (done: string) => void;

/** From the first page to a confirmed account. */
export async function signUp(page: Page, { name, email, password }: Person, step: Step): Promise<void> {
  await page.goto(`${local.siteUrl}/`);
  await page.click('main a:has-text("Create an account")');
  await page.fill("main [name=name]", name);
  await page.fill("main [name=email]", email);
  await page.fill("main [name=password]", password);
  await page.click('main button:has-text("Create account")');
  await page.locator("main [role=status]", { hasText: email }).waitFor();
  step("the account is asked for");
  await page.goto(await mailedLink(email, /https?:\S+confirm-address\S+/));
  await page.click('main button:has-text("Confirm")');
  await page.fill("main [name=email]", email);
  await page.fill("main [name=password]", password);
  await page.click('main button:has-text("Sign in")');
  await page.waitForURL((url) => url.pathname === "/");
  step("the address is confirmed, and the account signed in");
}

/** From the form of a new site, filled as it is, to what a visitor gets from the site. */
export async function orderAndWatch(page: Page, step: Step): Promise<string> {
  await page.click("#total button[type=submit]");
  await page.waitForURL(/\/invoice\/inv_/);
  step("the site is ordered");
  await page.click('main button:has-text("Pay $")');
  await page.click('button:has-text("Test payment: pay")');
  await page.waitForURL(/\/deployments\/dep_/);
  step("it is paid, and being built");
  const ended = page.locator("p.ended .dot, #outcome h1 .dot:not(.busy)").first();
  await ended.waitFor({ timeout: 120_000 });
  const outcome = (await ended.innerText()).trim();
  if (outcome !== "In service") throw new Error(`The first deployment ended as: ${outcome}`);
  // Without a script the head of the page was written before the end was known.
  if ((await page.locator("#outcome .head a").count()) === 0) await page.reload();
  const address = (await page.locator("#outcome .head a").last().getAttribute("href")) ?? "";
  const { status, text } = await request(address);
  if (status !== 200) throw new Error(`${address} answers ${status}`);
  step("it is online");
  return text;
}
