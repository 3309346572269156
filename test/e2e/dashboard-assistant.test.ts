import type { Browser, BrowserContext, Page, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { OwnAccount } from "../../protocol/api/accounts.ts";
import { ScriptedModel, type Said } from "../support/scripted-model.ts";
import { serveRequests } from "../support/serve-requests.ts";
import { launchBrowser, signedIn } from "./browser.ts";
import { startControlPlane, type ControlPlane } from "./control-plane.ts";
import type { Created } from "./service.ts";

/** The assistant with a model, which follows a script. */
let model = new ScriptedModel([]);
let modelHost: Awaited<ReturnType<typeof serveRequests>>;
let service: ControlPlane;
let browser: Browser;
beforeAll(async () => {
  modelHost = await serveRequests((request) => model.answer(request));
  service = await startControlPlane({
    MODEL_URL: `http://${modelHost.host}:${modelHost.port}/v1`,
    MODEL_NAME: "scripted",
  });
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await service.stop();
  await modelHost.close();
});

const use = (name: string, args: object): Said => ({ calls: [{ name, args }] });
const open = use("open_tools", { group: "sites" });
const says = (...turns: Said[]): void => void (model = new ScriptedModel(turns));

let context: BrowserContext;
let page: Page;
let made = 0;
/** Everybody's window; each has a site that was never paid for, and credits. */
async function enter(hasScript: boolean): Promise<string> {
  ({ context, page } = await signedIn(
    browser,
    { javaScriptEnabled: hasScript },
    service.operator,
    service.siteUrl,
  ));
  const { id } = (await (await page.request.get(`${service.siteUrl}/api/v1/account`)).json()) as OwnAccount;
  await post("/credits/grants", { accountId: id, amount: 50 });
  // The free plan has ten messages a minute, which these tests exceed.
  const headers = { Origin: service.siteUrl };
  const data = { plan: "pro" };
  expect((await page.request.patch(`${service.siteUrl}/api/v1/accounts/${id}`, { headers, data })).ok()).toBe(
    true,
  );
  const site = {
    name: `asked-${++made}`,
    deployType: "github",
    githubUrl: "git.invalid/a/b",
    billingTerm: 1,
  };
  return (await post<Created>("/sites", site)).siteId;
}
async function post<Body>(path: string, data: object): Promise<Body> {
  const answer = await page.request.post(`${service.siteUrl}/api/v1${path}`, {
    headers: { Origin: service.siteUrl },
    data,
  });
  expect(answer.ok()).toBe(true);
  return (await answer.json()) as Body;
}
const isThere = async (site: string) =>
  (await page.request.get(`${service.siteUrl}/api/v1/sites/${site}`)).status() === 200;
const lastAnswer = () => page.locator("berth-chat .message.assistant").last();

describe("the panel beside a page", () => {
  let site: string;
  beforeAll(async () => {
    site = await enter(true);
    await page.goto(`${service.siteUrl}/sites/${site}`);
    await page.click("[data-assistant]");
    await page.locator("aside.panel textarea:focus").waitFor();
  });
  const ask = async (text: string): Promise<void> => {
    // One message at a time.
    await page.locator("aside.panel .message[aria-busy]").waitFor({ state: "detached" });
    await page.fill("aside.panel textarea", text);
    await page.press("aside.panel textarea", "Enter");
  };

  it("answers about what the page shows, with its steps folded and its price, and takes nothing as HTML", async () => {
    says(open, use("get_site", { site }), { text: "It waits for <b>its first payment</b>." });
    await ask("Why does it not run?");
    await lastAnswer().locator(".text", { hasText: "It waits for <b>its first payment</b>." }).waitFor();
    await lastAnswer().locator("details.steps summary").click();
    await lastAnswer().locator("li", { hasText: "get site: done" }).waitFor();
    await lastAnswer()
      .locator("p", { hasText: /^\d+ credits?$/ })
      .waitFor();
    expect(await page.locator("aside.panel [data-balance]").innerText()).not.toBe("50 credits");
    expect(model.prompts).toContain(`I am looking at ${site}`);
  });

  it("says that the model did not answer, and that it cost nothing", async () => {
    const balance = await page.locator("aside.panel [data-balance]").innerText();
    says({ status: 500 });
    await ask("And now?");
    await lastAnswer()
      .locator(".text", { hasText: "did not answer, so this message costs nothing." })
      .waitFor();
    await lastAnswer().locator("p", { hasText: "0 credits" }).waitFor();
    expect(await page.locator("aside.panel [data-balance]").innerText()).toBe(balance);
  });

  it("says how long the limit of a day still lasts", async () => {
    const answer = { status: 429, headers: { "Retry-After": "7000" }, json: { error: "rate_limited" } };
    await page.route("**/chat/stream", (route) => route.fulfill(answer));
    await ask("Once more?");
    await lastAnswer().locator("p.bad", { hasText: "Too many messages: try again in 2 hours." }).waitFor();
    await page.unroute("**/chat/stream");
  });

  it.each([
    ["is lost", (route: Route) => route.abort("connectionreset")],
    ["is a proxy's", (route: Route) => route.fulfill({ status: 504, body: "Gateway Timeout" })],
  ])("an answer that %s may be that of a message that arrived, which is kept", async (_, answers) => {
    await page.route("**/chat/stream", answers);
    await ask("Is it slow?");
    await lastAnswer().locator("p", { hasText: "may have received the message" }).waitFor();
    expect(await page.inputValue("aside.panel textarea")).toBe("Is it slow?");
    await page.unroute("**/chat/stream");
  });

  it("goes on with the conversation on another page, and stops an answer that does not come", async () => {
    await page.goto(`${service.siteUrl}/billing`);
    await page.click("[data-assistant]");
    await page.locator("aside.panel .message", { hasText: "Why does it not run?" }).waitFor();
    says({ stalls: true });
    await ask("Tell me everything.");
    await page.click("aside.panel [data-stop]");
    await lastAnswer().locator("p.warn", { hasText: "Stopped here." }).waitFor();
    await page.press("aside.panel textarea", "Escape");
    await page.locator("[data-assistant]:focus").waitFor();
    expect(await page.locator("aside.panel").count()).toBe(0);
  });

  it("leaves whoever has scrolled up in a long answer there, and keeps what was typed when it is closed", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    await page.click("[data-assistant]");
    // The answer that was stopped is still waited for in the conversation before.
    await page.click('aside.panel button:text-is("New")');
    await page.locator("aside.panel .message").first().waitFor({ state: "detached" });
    const panel = page.locator("aside.panel");
    says(
      { text: "One line.\n".repeat(100), calls: [{ name: "open_tools", args: { group: "sites" } }] },
      { text: "The last line.", after: promise },
    );
    await ask("Tell me everything.");
    await lastAnswer()
      .locator(".text", { hasText: /(One line\.\s*){100}/ })
      .waitFor();
    const isAtEnd = () =>
      panel.evaluate(
        ({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight < 40,
      );
    expect(await isAtEnd()).toBe(true);
    await panel.evaluate((element) => (element.scrollTop = 0));
    resolve();
    await lastAnswer()
      .locator("p", { hasText: /^\d+ credits?$/ })
      .waitFor();
    expect(await panel.evaluate(({ scrollTop }) => scrollTop)).toBe(0);
    await page.fill("aside.panel textarea", "Not sent yet");
    await page.press("aside.panel textarea", "Escape");
    await page.click("[data-assistant]");
    await page.locator("aside.panel textarea:focus").waitFor();
    expect(await page.inputValue("aside.panel textarea")).toBe("Not sent yet");
    await page.fill("aside.panel textarea", "");
    await page.press("aside.panel textarea", "Escape");
  });

  it("takes a typed yes as one to the card on screen, and to nothing where an answer was stopped before its card", async () => {
    const unanswered = async (text: string): Promise<unknown> => {
      const { promise, resolve } = Promise.withResolvers<Route>();
      await page.route("**/chat/stream", resolve);
      await ask(text);
      const route = await promise;
      const body: unknown = route.request().postDataJSON();
      await page.click("aside.panel [data-stop]");
      // Whatever is held when a route ends goes on to the service.
      await route.abort().catch(() => undefined);
      await page.unroute("**/chat/stream");
      return body;
    };
    await page.click("[data-assistant]");
    await page.click('aside.panel button:text-is("New")');
    await page.locator("aside.panel .message").first().waitFor({ state: "detached" });
    expect(await unanswered("yes")).toMatchObject({ confirm: "none" });
    expect(await unanswered("Delete my site.")).not.toHaveProperty("confirm");
    expect(await unanswered("yes")).toMatchObject({ confirm: "none" });
    says(open, use("delete_site", { site }), { text: "I ask first." });
    await ask("Delete my site.");
    const id = await page.getAttribute("aside.panel .pending button[name=confirm]", "value");
    expect(await unanswered("Yes!")).toMatchObject({ confirm: id });
    expect(await unanswered("No.")).not.toHaveProperty("confirm");
    await page.press("aside.panel textarea", "Escape");
    await page.click("[data-assistant]");
    await page.locator("aside.panel [name=confirm]").waitFor({ state: "attached" });
    expect(await unanswered("yes")).toMatchObject({ confirm: id });
    await page.press("aside.panel textarea", "Escape");
  });

  it("deletes what it was asked to after a click, and not after another", async () => {
    await page.click("[data-assistant]");
    await page.click('aside.panel button:text-is("New")');
    await page.locator("aside.panel .message").first().waitFor({ state: "detached" });
    says(open, use("delete_site", { site }), { text: "I ask first." }, { text: "It stays." });
    await ask("Delete my site.");
    await page.click('aside.panel .pending button:text-is("Decline")');
    await lastAnswer().locator(".text", { hasText: "It stays." }).waitFor();
    expect(await isThere(site)).toBe(true);
    says(use("delete_site", { site }), { text: "I ask first." }, { text: "It is gone." });
    await ask("Delete it after all.");
    await page.focus('aside.panel .pending button:text-is("Confirm")');
    await page.keyboard.press("Enter");
    await page.locator("aside.panel .message.user", { hasText: "yes" }).waitFor();
    await lastAnswer()
      .locator("p", { hasText: /credits?$/ })
      .waitFor();
    expect(await isThere(site)).toBe(false);
    expect(await page.locator("aside.panel .pending").count()).toBe(0);
    expect(await page.locator("aside.panel textarea:focus").count()).toBe(1);
  });
});

it("without a script, its page answers, and deletes after a click", async () => {
  const site = await enter(false);
  await page.goto(`${service.siteUrl}/assistant`);
  const send = async (text: string): Promise<void> => {
    await page.fill("#form-say [name=message]", text);
    await page.click('#form-say button:text-is("Send")');
  };
  says({ text: "All is <b>well</b>." });
  await send("Is everything well?");
  await lastAnswer().locator(".text", { hasText: "All is <b>well</b>." }).waitFor();
  says(open, use("delete_site", { site }), { text: "I ask first." });
  await send("Delete my site.");
  await page.locator("h2", { hasText: "The assistant needs your confirmation" }).waitFor();
  expect(await isThere(site)).toBe(true);
  await page.click('main button:text-is("Confirm")');
  await page
    .locator("h2", { hasText: "The assistant needs your confirmation" })
    .waitFor({ state: "detached" });
  expect(await isThere(site)).toBe(false);
  await context.close();
});
