import { renameSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Site } from "../../protocol/api/sites.ts";
import { launchBrowser, newPerson, signedIn } from "./browser.ts";
import {
  launch,
  local,
  pay,
  plainServer,
  remove,
  Repository,
  request,
  settled,
  stateDirectory,
  until,
  type Created,
} from "./service.ts";

/** What operators do for and to their customers, on the pages of both. */
let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

describe.each([
  ["with a script", true],
  ["without a script", false],
])("an operator, %s,", (_how, hasScript) => {
  const name = hasScript ? "Grace" : "Alan";
  let person: { email: string; password: string };
  let operator: Page;
  let customer: Page;
  let site: Site;
  const go = (page: Page, path: string) => page.goto(local.siteUrl + path);
  const said = (text: string) => operator.locator("main [data-flash]", { hasText: text }).waitFor();
  /** As its owner gets it. */
  const get = async <Body>(path: string): Promise<Body> =>
    (await (await customer.request.get(local.baseUrl + path)).json()) as Body;
  const running = (id: string) =>
    until(
      () => get<Site>(`/sites/${id}`),
      ({ status }) => status === "RUNNING",
    );
  const serves = async () => (await request(site.url)).status;

  beforeAll(async () => {
    person = await newPerson(browser, name);
    const options = { javaScriptEnabled: hasScript };
    const [one, other] = [await signedIn(browser, options), await signedIn(browser, options, person)];
    [operator, customer] = [one.page, other.page];
    const created = await customer.request.post(`${local.baseUrl}/sites`, {
      headers: { Origin: local.siteUrl },
      data: {
        name: "shop",
        deployType: "github",
        githubUrl: new Repository(plainServer("one")).address,
        billingTerm: 1,
      },
    });
    const { siteId, invoiceToken } = (await created.json()) as Created;
    await pay(invoiceToken);
    site = await running(siteId);
  });
  afterAll(async () => {
    await customer.request.delete(`${local.baseUrl}/sites/${site.id}`, {
      headers: { Origin: local.siteUrl },
    });
    await until(
      async () => (await customer.request.get(`${local.baseUrl}/sites/${site.id}`)).status(),
      (status) => status === 404,
    );
  });

  /** The customer's page, by the search. */
  const openAccount = async (): Promise<void> => {
    await go(operator, "/operator/accounts");
    await operator.fill("main [name=search]", person.email);
    await operator.press("main [name=search]", "Enter");
    await operator.click(`main a:text-is("${person.email}")`);
    await operator.locator("h1", { hasText: name }).waitFor();
  };

  it("suspends a customer, who reads why and cannot act while the site is away, and releases them", async () => {
    await openAccount();
    await operator.fill("#form-suspend [name=reason]", "It sends spam.");
    await operator.click("#form-suspend button");
    await said("The account is suspended");
    await operator.locator("main", { hasText: "It sends spam." }).waitFor();
    await until(serves, (status) => status === 503);
    const away = await request(site.url);
    expect(away.text).toContain("This site is suspended");
    expect(away.text).not.toMatch(/pay/i);

    await go(customer, `/sites/${site.id}/settings`);
    await customer.locator(".banner", { hasText: "Your account is suspended: It sends spam." }).waitFor();
    await customer.fill("#form-run [name=startCommand]", "node other.js");
    await customer.click("#form-run button[type=submit]");
    await customer
      .locator("main [role=alert]", { hasText: "This account is suspended: It sends spam." })
      .waitFor();
    expect(await customer.inputValue("#form-run [name=startCommand]")).toBe("node other.js");

    await openAccount();
    await operator.click('main button:text-is("Release")');
    await said("The suspension has ended.");
    await until(serves, (status) => status === 200);
    await running(site.id);
    await go(customer, `/sites/${site.id}`);
    await customer.locator("#site-head h1 .dot", { hasText: "In service" }).waitFor();
    expect(await customer.locator(".banner").count()).toBe(0);
  });

  it("sees a customer's dashboard, which says so and takes no change, and goes back to their own", async () => {
    await openAccount();
    await operator.click(`main button:has-text("View as ${name}")`);
    const banner = operator.locator(".banner", { hasText: `You see the dashboard of ${person.email}` });
    await banner.waitFor();
    await go(operator, `/sites/${site.id}`);
    await operator.click('#site-head button:has-text("Restart")');
    await operator.locator("main [role=alert]", { hasText: "can change nothing" }).waitFor();
    await banner.locator('button:has-text("Back to your own")').click();
    await operator.waitForURL((url) => url.pathname === "/");
    expect(await banner.count()).toBe(0);
    await go(operator, "/operator");
    await operator.locator("h1", { hasText: "Operator" }).waitFor();
  });

  it("notes what to know of a customer, changes the plan of their site, and sees what a host's machine uses", async () => {
    await openAccount();
    await operator.fill("#form-note [name=note]", "Prefers mail.");
    await operator.click("#form-note button");
    await said("The note is saved.");
    expect(await operator.inputValue("#form-note [name=note]")).toBe("Prefers mail.");
    await operator.click(`#plan-${site.id} summary`);
    const form = operator.locator(`#plan-${site.id} form`);
    const dearest = await form.locator("option").last().getAttribute("value");
    await form.locator("select").selectOption(dearest);
    await form.locator("button").click();
    await said("The plan changes once the customer has paid the invoice for the difference.");
    expect((await get<Site>(`/sites/${site.id}`)).nextPackId).toBe(dearest);
    await go(operator, "/operator/hosts");
    await operator
      .locator("#hosts .meter", { hasText: /Memory in use\s*\d+\.\d of \d+\.\d GB/ })
      .first()
      .waitFor();
    await operator
      .locator("#hosts .meter", { hasText: /Processors\s*\d+\.\d of \d+ core/ })
      .first()
      .waitFor();
  });

  it("asks again for a deployment that failed, once its cause is gone", async () => {
    const repository = new Repository(plainServer("two"));
    const bare = join(stateDirectory, "git", "e2e", `${repository.name}.git`);
    renameSync(bare, `${bare}.away`);
    const failed = await launch({ githubUrl: repository.address });
    expect(failed.status).toBe("FAILED");
    renameSync(`${bare}.away`, bare);
    await go(operator, "/operator/queue?state=ended");
    const row = operator.locator("#queue tr", { hasText: failed.name });
    await row.locator(".dot", { hasText: "Failed" }).waitFor();
    await row.locator('button:text-is("Try again")').click();
    await said(`Requested again: Deploy ${failed.name}`);
    const mended = await until(
      () => settled(failed.id),
      ({ status }) => status === "RUNNING",
    );
    expect((await request(mended.url)).text).toBe("version two");
    await remove(failed.id);
  });
});
