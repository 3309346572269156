import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Command } from "../../protocol/api/commands.ts";
import type { Database, DatabaseCreated } from "../../protocol/api/databases.ts";
import type { Invoice } from "../../protocol/api/invoices.ts";
import { dashboardPages, emptyPages, publicPages, type Shown } from "../support/dashboard-pages.ts";
import { launchBrowser, newPerson, signedIn } from "./browser.ts";
import { api, createSite, local, pay, request, until } from "./service.ts";

/** Every page of the dashboard in a real browser: what is promised of all of them. */
let browser: Browser;
/** The operator's, and that of an account which has nothing yet. */
let operator: Session;
let fresh: Session;
let shown: Shown;
let failed: string;
beforeAll(async () => {
  browser = await launchBrowser();
  operator = await sessionOf();
  fresh = await sessionOf(await newPerson(browser, "New"));
  const site = local.sampleSite.id;
  // Listed and shown before any deployment mounts it.
  await api("PATCH", `/sites/${site}`, {
    settings: { volumes: [{ name: "uploads", mountPath: "/uploads" }] },
  });
  const { databaseId, invoiceToken } = (
    await api<DatabaseCreated>("POST", "/databases", { name: `seen-${process.pid}`, type: "postgresql" })
  ).body;
  await pay(invoiceToken);
  // Its reason contains an address that is as long as those of real ones may be.
  const unbuilt = await createSite({ githubUrl: `git.invalid/owner/${"repository".repeat(9)}` });
  failed = unbuilt.siteId;
  await pay(unbuilt.invoiceToken);
  const command = (await api<Command>("POST", `/sites/${site}/commands`, { command: "echo seen" })).body.id;
  const { data } = (await api<{ data: { id: string }[] }>("GET", `/sites/${site}/deployments`)).body;
  const account = (await api<{ id: string }>("GET", "/account")).body.id;
  await until(
    async () => (await api<Command>("GET", `/commands/${command}`)).body,
    ({ finishedAt }) => finishedAt !== null,
  );
  await until(
    async () => (await api<Database>("GET", `/databases/${databaseId}`)).body.status,
    (status) => status === "RUNNING",
  );
  await until(
    async () => (await api<{ status: string }>("GET", `/sites/${failed}`)).body.status,
    (status) => status === "FAILED",
  );
  shown = {
    site,
    command,
    deployment: data[0]?.id ?? "",
    database: databaseId,
    account,
    invoice: unbuilt.invoiceId,
  };
});
afterAll(async () => {
  await browser.close();
  await api("DELETE", `/sites/${failed}`);
  await api("DELETE", `/databases/${shown.database}`);
  for (const path of [`/sites/${failed}`, `/databases/${shown.database}`])
    await until(
      async () => (await api("GET", path)).status,
      (status) => status === 404,
    );
});

/** Without its comments, of which there are as many bytes: each page reads it anew. */
const axe = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");
type Violations = { violations: { id: string; nodes: { html: string }[] }[] };
const found = ({ violations }: Violations): string[] =>
  violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));

/** By all rules or these. axe takes twice the time if it also lists what is right. */
const violations = (...rules: string[]): string => {
  const only = rules.length > 0 && { runOnly: { type: "rule", values: rules } };
  return `axe.run(${JSON.stringify({ resultTypes: ["violations"], ...only })})`;
};

/** What a page moved after it was first painted, without the reader's doing (Layout Instability API). */
const watchShifts = `
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries())
      if (!entry.hadRecentInput && entry.value > 0.005)
        window.shifts.push(entry.value.toFixed(4) + " " + entry.sources.map(({ node }) => node?.outerHTML?.slice(0, 120) ?? node?.textContent).join(" | "));
  }).observe({ type: "layout-shift", buffered: true });
`;

/** Fields and focus rings of less than 3:1 against what is around them (WCAG 1.4.11). */
const faint = `(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const channels = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([red, green, blue]) => {
    const [r, g, b] = [red, green, blue].map((value) => value / 255).map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const groundOf = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = channels(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const seen = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
  const name = (element) => element.outerHTML.slice(0, 100);
  const weak = [];
  const fields = [...document.querySelectorAll("input:not([type=hidden], [type=checkbox], [type=radio]), select, textarea")].filter(seen);
  for (const field of fields) {
    const { borderTopColor, borderTopWidth } = getComputedStyle(field);
    const around = groundOf(field.parentElement);
    const edge = borderTopWidth === "0px" ? groundOf(field) : channels(borderTopColor);
    if (contrast(edge, around) < 3) weak.push("field " + contrast(edge, around).toFixed(2) + " " + name(field));
  }
  const kinds = new Map();
  for (const control of document.querySelectorAll("a[href], button, summary, input:not([type=hidden]), select, textarea"))
    if (seen(control) && !control.disabled) kinds.set(control.tagName + control.type + control.className + control.parentElement.className, control);
  for (const control of kinds.values()) {
    control.focus({ focusVisible: true, preventScroll: true });
    const box = control.matches(".choice input") ? control.closest("label") : control;
    const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(box);
    const ring = contrast(channels(outlineColor), groundOf(box.parentElement));
    if (outlineStyle === "none" || parseFloat(outlineWidth) < 2 || ring < 3) weak.push("focus " + ring.toFixed(2) + " " + outlineStyle + " " + name(control));
  }
  document.activeElement?.blur();
  return weak;
})()`;

/** Menus that open beyond an edge of the screen to which nothing scrolls. */
const cutOff = `[...document.querySelectorAll("details.menu")].filter((menu) => {
  if (!menu.checkVisibility()) return false;
  const wasOpen = menu.open;
  menu.open = true;
  const { left, right } = menu.querySelector(":scope > div").getBoundingClientRect();
  menu.open = wasOpen;
  return left < 0 || right > innerWidth;
}).map((menu) => menu.innerText)`;

/** Controls that are behind the tabs at the foot of a phone when they get the focus (WCAG 2.4.11). */
const covered = `(() => {
  const tabs = document.querySelector(".phone-tabs");
  if (!tabs?.checkVisibility()) return [];
  const from = tabs.getBoundingClientRect().top;
  const covered = [];
  for (const control of document.querySelectorAll("main :is(a[href], button, summary, input:not([type=hidden]), select, textarea)")) {
    control.focus();
    const { top, height } = control.getBoundingClientRect();
    if (document.activeElement === control && top + Math.min(height, 20) > from) covered.push(control.outerHTML.slice(0, 100));
  }
  document.activeElement?.blur();
  scrollTo(0, 0);
  return covered;
})()`;

/** Compressed, by address: each file is fetched once. */
const sizes = new Map<string, Promise<number>>();
const sizeOf = (page: Page, address: string): Promise<number> => {
  const known =
    sizes.get(address) ??
    page.request.get(address).then(async (answer) => gzipSync(await answer.body()).length);
  sizes.set(address, known);
  return known;
};
async function scriptOver(page: Page): Promise<number> {
  const addresses = await page.evaluate<string[]>(
    'performance.getEntriesByType("resource").map(({ name }) => name).filter((name) => name.endsWith(".js"))',
  );
  const bytes = (await Promise.all(addresses.map((address) => sizeOf(page, address)))).reduce(
    (sum, size) => sum + size,
    0,
  );
  const budget = (await page.locator("time-charts").count()) > 0 ? 50_000 : 30_000;
  return bytes > budget ? bytes : 0;
}

const desk = { width: 1440, height: 900 };
const phone = { width: 390, height: 844 };

/** Everything that is promised of a page, and what it breaks. Each window is new, so nothing is cached. */
async function faultsOf(path: string, storageState?: Session): Promise<Record<string, unknown>> {
  const faults: Record<string, unknown> = {};
  const note = (what: string, value: unknown): void => {
    if (Array.isArray(value) ? value.length > 0 : value !== 0) faults[what] = value;
  };
  const errors: string[] = [];
  const context = await browser.newContext({ bypassCSP: true, ...(storageState && { storageState }) });
  await context.addInitScript(watchShifts);
  // What other tests do moves the rows of lists that are kept live: 204 ends an event stream for good. A browser with routes caches nothing.
  await context.route("**/api/v1/events*", (route) => route.fulfill({ status: 204 }));
  const page = await context.newPage();
  page.on("pageerror", (error) => errors.push(error.message));
  for (const [viewport, scheme, other] of [
    [desk, "light", "dark"],
    [phone, "dark", "light"],
  ] as const) {
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme: scheme });
    await page.goto(local.siteUrl + path, { waitUntil: "load" });
    // Islands have drawn, and fonts are there.
    await page.evaluate(
      "document.fonts.ready.then(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))))",
    );
    const kind = `${viewport.width} ${scheme}`;
    note(`menus that are cut off, ${kind}`, await page.evaluate<string[]>(cutOff));
    note(`moved, ${kind}`, await page.evaluate<string[]>("window.shifts"));
    if (scheme === "light") note("script", await scriptOver(page));
    await page.evaluate(axe);
    note(`axe, ${kind}`, found(await page.evaluate<Violations>(violations())));
    note(`faint, ${kind}`, await page.evaluate<string[]>(faint));
    note(`covered, ${kind}`, await page.evaluate<string[]>(covered));
    await page.emulateMedia({ colorScheme: other });
    // The document is the same one; only its colours are others.
    const colours = violations("color-contrast", "link-in-text-block");
    note(`axe, ${viewport.width} ${other}`, found(await page.evaluate<Violations>(colours)));
    note(`faint, ${viewport.width} ${other}`, await page.evaluate<string[]>(faint));
    await page.setViewportSize({ width: 320, height: 800 });
    note(
      "wider than 320",
      await page.evaluate<number>("document.documentElement.scrollWidth - window.innerWidth"),
    );
  }
  const unkept =
    '[...document.querySelectorAll("[data-live] details:not([id])")].map((fold) => fold.innerText)';
  note("folds that close when their part changes", await page.evaluate<string[]>(unkept));
  await context.close();
  note("errors", errors);
  return faults;
}

type Session = Awaited<ReturnType<BrowserContext["storageState"]>>;
async function sessionOf(person?: { email: string; password: string }): Promise<Session> {
  const { context } = await signedIn(browser, {}, person);
  const session = await context.storageState();
  await context.close();
  return session;
}

describe("nothing for axe, moves or is faint, light and dark, on a desk and a phone; 320 pixels and 30 kB of script suffice:", () => {
  it.each(Object.entries(dashboardPages))("%s", async (_screen, at) => {
    expect(await faultsOf(at(shown), operator)).toEqual({});
  });

  it.each(["", "/settings", "/deployments"])("/sites/:id%s of a site that failed", async (tab) => {
    expect(await faultsOf(`/sites/${failed}${tab}`, operator)).toEqual({});
  });

  it("long values without a space widen no page", async () => {
    const long = "w".repeat(40);
    const githubUrl = `git.invalid/${long}/${long}`;
    const { siteId, invoiceToken } = await createSite({ name: long, githubUrl, branch: long.repeat(3) });
    await api("PATCH", `/sites/${siteId}`, { settings: { buildCommand: long.repeat(12) } });
    await api("PATCH", `/sites/${siteId}`, {
      envVariables: [{ key: long.repeat(3), value: long.repeat(50) }],
    });
    const made = { name: `d${long}`, type: "postgresql", billingTerm: 1 };
    const { databaseId } = (await api<{ databaseId: string }>("POST", "/databases", made)).body;
    const context = await browser.newContext({ storageState: operator });
    const page = await context.newPage();
    const wide: unknown[] = [];
    for (const path of [
      "/",
      "/sites",
      "/databases",
      "/activity",
      "/billing",
      `/invoice/${invoiceToken}`,
      ...["", "/settings", "/variables", "/deployments", "/data", "/clone"].map(
        (tab) => `/sites/${siteId}${tab}`,
      ),
      ...["", "/connect", "/settings"].map((tab) => `/databases/${databaseId}${tab}`),
      "/operator/money",
      "/operator/sites",
      `/operator/accounts/${shown.account}`,
    ]) {
      await page.goto(local.siteUrl + path, { waitUntil: "load" });
      await page.evaluate(
        'for (const fold of document.querySelectorAll("main details:not(.menu)")) fold.open = true',
      );
      for (const width of [1280, 760, 390]) {
        await page.setViewportSize({ width, height: 844 });
        const over = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
        if (over > 0) wide.push([path, width, over]);
      }
    }
    expect(wide).toEqual([]);
    await api("DELETE", `/sites/${siteId}`);
    await api("DELETE", `/databases/${databaseId}`);
    await context.close();
  });

  it("/deployments/:id that failed", async () => {
    const { data } = (await api<{ data: { id: string }[] }>("GET", `/sites/${failed}/deployments`)).body;
    expect(await faultsOf(`/deployments/${data[0]?.id}`, operator)).toEqual({});
  });

  it("an invoice before and after it is paid, the test payment, and a device's request, with and without a session", async () => {
    const { siteId, invoiceToken } = await createSite({ githubUrl: "git.invalid/owner/repository" });
    const { token: paid } = (await api<Invoice>("GET", `/invoices/${shown.invoice}`)).body;
    const opened = await request(`${local.siteUrl}/invoice/${invoiceToken}/pay`, {
      method: "POST",
      headers: { Accept: "text/html", Origin: local.siteUrl },
    });
    const payment = new URL(opened.headers.location ?? "", local.siteUrl).pathname;
    const device = await request(`${local.baseUrl}/auth/device`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ clientName: "A client" }),
    });
    const { user_code } = JSON.parse(device.text) as { user_code: string };
    for (const path of [`/invoice/${invoiceToken}`, `/invoice/${paid}`, payment])
      for (const session of [operator, undefined])
        expect([path, await faultsOf(path, session)]).toEqual([path, {}]);
    for (const path of ["/device", `/device?code=${user_code}`, "/device?code=AAAA-AAAA"])
      expect([path, await faultsOf(path, operator)]).toEqual([path, {}]);
    await api("DELETE", `/sites/${siteId}`);
  });

  it.each(publicPages)("%s without a session", async (path) => {
    expect(await faultsOf(path)).toEqual({});
  });

  describe("for a new account", () => {
    it.each(emptyPages)("%s", async (path) => {
      expect(await faultsOf(path, fresh)).toEqual({});
    });
  });
});
