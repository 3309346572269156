import { execFileSync } from "node:child_process";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeAuthority, makeServerCertificate } from "../../agent/databases/certificates.ts";
import type { Database } from "../../protocol/api/databases.ts";
import type { Site } from "../../protocol/api/sites.ts";
import { serveRequests } from "../support/serve-requests.ts";
import { StripeServer, type Event } from "../support/stripe/server.ts";
import { atPlainLog, launchBrowser, signedIn } from "./browser.ts";
import { startControlPlane, type ControlPlane } from "./control-plane.ts";

/** What people pay, on a control plane whose processor is Stripe. */
const stripe = new StripeServer({ key: "sk_test_local", webhookSecret: "whsec_local" });
type Served = Awaited<ReturnType<typeof serveRequests>>;
let stripeApi: Served;
let stripePages: Served;
let service: ControlPlane;
let browser: Browser;
beforeAll(async () => {
  const host = "checkout.stripe.com";
  const authority = await makeAuthority("Test", new Date());
  const { key, certificate } = await makeServerCertificate(authority, [host], new Date());
  stripeApi = await serveRequests((request) => stripe.handle(request));
  stripePages = await serveRequests(checkoutPage, { key, cert: certificate });
  service = await startControlPlane({
    PAYMENTS: "stripe",
    STRIPE_SECRET_KEY: stripe.options.key,
    STRIPE_WEBHOOK_SECRET: stripe.options.webhookSecret,
    STRIPE_API_HOST: `http://127.0.0.1:${stripeApi.port}`,
  });
  browser = await launchBrowser(`--host-resolver-rules=MAP ${host} 127.0.0.1:${stripePages.port}`);
});
afterAll(async () => {
  await browser.close();
  await service.stop();
  await stripeApi.close();
  await stripePages.close();
});

/** Stripe's page: a card pays at once, a bank within days, and both lead back to the invoice. */
async function checkoutPage({ url }: Request): Promise<Response> {
  const { pathname, searchParams } = new URL(url);
  const session = stripe.sessions.get(pathname.split("/").at(-1) ?? "");
  if (!session) return new Response(null, { status: 404 });
  const { id, amount_total, success_url, cancel_url } = session;
  const method = searchParams.get("method");
  if (method !== null) {
    stripe.pay(id, method === "bank");
    return Response.redirect(success_url, 303);
  }
  const page = `<h1>${amount_total}</h1> <a href="?method=card">Card</a> <a href="?method=bank">Bank</a> <a href="${cancel_url}">Back</a>`;
  return new Response(page, { headers: { "Content-Type": "text/html" } });
}

/** A window in which Stripe's page has a certificate of ours. */
const signIn = (hasScript = true) =>
  signedIn(
    browser,
    { javaScriptEnabled: hasScript, ignoreHTTPSErrors: true },
    service.operator,
    service.siteUrl,
  );

/** What an invoice's page says of its state. */
const stateOn = (page: Page, word: "Paid" | "Unpaid") =>
  page.locator("h1 .dot", { hasText: new RegExp(`^\\s*${word}\\s*$`) });

const tell = async (event: Event): Promise<void> => {
  const { body, headers } = stripe.signed(event);
  const { status } = await fetch(`${service.siteUrl}/webhooks/stripe`, { method: "POST", body, headers });
  expect(status).toBe(200);
};

describe.each([
  ["with a script", true],
  ["without a script", false],
])("a customer, %s,", (_how, hasScript) => {
  let page: Page;
  beforeAll(async () => {
    ({ page } = await signIn(hasScript));
  });

  const go = (path: string) => page.goto(service.siteUrl + path);
  const get = async <Body>(path: string): Promise<Body> =>
    (await (await page.request.get(`${service.siteUrl}/api/v1${path}`)).json()) as Body;
  const balance = async (): Promise<number> => (await get<{ balance: number }>("/credits")).balance;
  /** From an invoice's page to Stripe's, and back, or on to what was paid for. */
  const pays = async (method: "Card" | "Bank", to = /\/invoice\/.*returned=1/): Promise<void> => {
    await page.click('main button:has-text("Pay $")');
    await page.click(`a:text-is("${method}")`);
    await page.waitForURL(to);
  };
  const state = (word: "Paid" | "Unpaid") => stateOn(page, word).waitFor();

  it("turns back on the processor's page, then buys credits, and keeps the invoice as a PDF", async () => {
    const before = await balance();
    await go("/billing");
    await page.locator('#credits button:has-text("Buy for $")').first().click();
    await page.waitForURL(/\/invoice\/inv_/);
    const invoice = new URL(page.url()).pathname;
    await page.click('main button:has-text("Pay $")');
    const asked = Number(await page.locator("h1", { hasText: /^\d+$/ }).innerText());
    await page.click('a:text-is("Back")');
    await page.waitForURL(service.siteUrl + invoice);
    await state("Unpaid");
    await go("/billing?status=unpaid");
    const open = page.locator("#invoices tbody tr", { has: page.locator(`a[href="${invoice}/pdf"]`) });
    await open.locator('a:text-is("Pay")').click();
    await pays("Card");
    await state("Paid");
    await page.click('a:text-is("Go to your credits")');
    expect(await balance()).toBeGreaterThan(before);
    expect(await page.locator("#credits .figure").innerText()).toBe(
      (await balance()).toLocaleString("en-US"),
    );
    await page.click("#transactions summary");
    await page.locator("#transactions td", { hasText: "Bought" }).first().waitFor();
    await go("/billing?status=unpaid");
    expect(await open.count()).toBe(0);
    await go("/billing?status=paid");
    const address = (await open.locator('a:text-is("PDF")').getAttribute("href")) ?? "";
    const pdf = await page.request.get(service.siteUrl + address);
    const printed = execFileSync("pdftotext", ["-layout", "-", "-"], {
      input: await pdf.body(),
      encoding: "utf8",
    });
    expect(printed).toMatch(/State +paid/);
    expect(printed).toContain(`$${(asked / 100).toFixed(2)}`);
  });

  it("reads that the processor is away, and pays for a database once it is back", async () => {
    const name = `paid-${hasScript ? "script" : "plain"}`;
    await go("/databases/new");
    await page.fill("main [name=name]", name);
    await page.click("#form-create button[type=submit]");
    await page.waitForURL(/\/invoice\/inv_/);
    stripe.breakNext({ on: /^POST \/v1\/checkout/, times: 100 });
    await page.click('main button:has-text("Pay $")');
    await page.locator("main", { hasText: "The payment processor is not reachable right now." }).waitFor();
    stripe.mend();
    await page.goBack();
    await pays("Card", /\/databases\/db_/);
    await page.locator("main [data-flash]", { hasText: "Paid: $7.00." }).waitFor();
    await page.locator("#database-head h1", { hasText: name }).waitFor();
    const { data } = await get<{ data: Database[] }>("/databases?limit=100");
    expect(data.find((one) => one.name === name)?.status).toBe("PROVISIONING");
  });

  it("reads that the bank refused a payment, pays by card, and what was ordered begins", async () => {
    const name = `paid-${hasScript ? "script" : "plain"}`;
    await go("/sites/new");
    await page.fill("main [name=name]", name);
    await page.fill("main [name=githubUrl]", "git.invalid/owner/repository");
    await page.click("#total button[type=submit]");
    await page.waitForURL(/\/invoice\/inv_/);
    await pays("Bank");
    await page.locator("main [role=status]", { hasText: "Your payment is being processed" }).waitFor();
    expect(await page.locator('main button:has-text("Pay $")').count()).toBe(0);
    const [session = ""] = [...stripe.sessions.keys()].slice(-1);
    await tell(stripe.end(session, false));
    await page.reload();
    await page.locator("main [role=alert]", { hasText: "The last payment was refused" }).waitFor();
    const site = async () =>
      (await get<{ data: Site[] }>("/sites?limit=100")).data.find((one) => one.name === name);
    expect((await site())?.status).toBe("PENDING");
    await pays("Card", /\/deployments\/dep_/);
    if (!hasScript) await atPlainLog(page);
    await page.locator("main [data-flash]", { hasText: "Paid: $5.00." }).waitFor();
    expect((await site())?.status).toBe("DEPLOYING");
  });

  it("as the operator gives money back, and says what was done about money that was given back at Stripe", async () => {
    const said = (text: string) => page.locator("main [data-flash]", { hasText: text }).waitFor();
    await go("/operator/money?status=paid");
    const invoice = await page.locator('main a[href^="/invoice/"]').first().getAttribute("href");
    await page.click('main a:text-is("Refund")');
    await page.locator("main li", { hasText: "It cannot be undone." }).waitFor();
    await page.click('#form-refund button:has-text("Refund $")');
    await said("The invoice is refunded.");
    await go(invoice ?? "");
    await page.locator("main", { hasText: "This invoice was refunded." }).waitFor();

    const others = [...stripe.intents.values()].filter(
      ({ status, refunded }) => status === "succeeded" && refunded === 0,
    );
    await tell(stripe.refundByHand(others.at(-1)?.id ?? "", 100));
    await go("/operator/money");
    const flagged = page.locator("section.card", { hasText: "Payment events that need attention" });
    expect(await flagged.innerText()).toContain("A payment was refunded at the processor.");
    await flagged.locator("[name=resolution]").first().fill("Agreed with the customer by phone.");
    await flagged.locator('button:text-is("Resolve")').first().click();
    await said("The event is resolved.");
    expect(await flagged.count()).toBe(0);
  });

  it("as the operator reads what is wrong with the set-up of payments", async () => {
    const check = async (text: string): Promise<void> => {
      await go("/operator/system");
      await page.click('main button:text-is("Check the payments")');
      await page.locator("main [data-flash]", { hasText: text }).waitFor();
    };
    const url = `${service.siteUrl}/webhooks/stripe`;
    stripe.endpoints = [];
    await check(`Stripe has no webhook endpoint ${url}`);
    stripe.endpoints = [{ url, status: "enabled", enabled_events: ["*"] }];
    await check("The payment processor is set up");
  });
});

it("an invoice that is open in another tab says by itself that it is paid", async () => {
  const { context, page } = await signIn();
  await page.goto(`${service.siteUrl}/billing`);
  await page.locator('#credits button:has-text("Buy for $")').first().click();
  await page.waitForURL(/\/invoice\/inv_/);
  const tab = await context.newPage();
  await tab.goto(page.url());
  await tab.evaluate("window.isTheSame = true");
  await page.click('main button:has-text("Pay $")');
  await page.click('a:text-is("Card")');
  await stateOn(tab, "Paid").waitFor();
  expect(await tab.locator('main button:has-text("Pay $")').count()).toBe(0);
  expect(await tab.evaluate("window.isTheSame")).toBe(true);
  await context.close();
});
