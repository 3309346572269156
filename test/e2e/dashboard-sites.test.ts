import { readFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { fillSignIn, launchBrowser, signedIn } from "./browser.ts";
import { event, lineOf } from "./log-events.ts";
import { api, createSite, gitHost, local, request, site, until } from "./service.ts";

/** A site's pages in a real browser, for what their scripts do. */
let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

const sample = async (): Promise<string> => {
  const { data } = (await api<{ data: { id: string; status: string }[] }>("GET", "/sites")).body;
  const running = data.find(({ status }) => status === "RUNNING");
  if (!running) throw new Error("No site runs: the sample should.");
  return running.id;
};

it("a deployment's log is folded by its steps but for the one that goes on or failed, and is searched and saved whole", async () => {
  const { context, page } = await signedIn(browser);
  const { data } = (await api<{ data: { id: string }[] }>("GET", `/sites/${await sample()}/deployments`))
    .body;
  let seq = 0;
  const lines = (step: string | undefined, ...texts: string[]) =>
    texts
      .map((text) => `id: ${++seq}\nevent: line\ndata: ${JSON.stringify({ ...lineOf(seq, text), step })}\n\n`)
      .join("");
  const built = Array.from({ length: 20_000 }, (_, index) => `compiles part ${index + 1}`);
  const first = lines("clone", "Fetching.") + lines("build", ...built);
  const second = `${lines("start", "It does not answer.")}${lines(undefined, "Deployment failed.")}event: end\ndata: {}\n\n`;
  let goesOn = (): void => undefined;
  const next = new Promise<void>((resolve) => (goesOn = resolve));
  let turn = 0;
  await page.route("**/api/v1/deployments/*/logs?*", async (route) => {
    const isFirst = turn++ === 0;
    if (!isFirst) await next;
    await route.fulfill({
      status: 200,
      contentType: "text/event-stream",
      body: `retry: 10\n\n${isFirst ? first : second}`,
    });
  });
  await page.goto(`${local.siteUrl}/deployments/${data[0]?.id}`);
  const head = (name: string) => page.locator(".log-step", { hasText: name });
  const isOpen = (name: string) => head(name).getAttribute("aria-expanded");
  const text = page.locator(".log-window .text");
  await text.getByText("compiles part 20000", { exact: true }).waitFor();
  goesOn();
  await text.getByText("Deployment failed.").waitFor();
  expect(await Promise.all(["Fetch the source", "Build", "Start and check"].map(isOpen))).toEqual([
    "false",
    "false",
    "true",
  ]);
  expect(await text.allInnerTexts()).toEqual(["It does not answer.", "Deployment failed."]);
  expect(await head("Build").innerText()).toMatch(/20,000 lines$/);
  expect(await page.locator(".log-state").innerText()).toBe("20,003 lines · complete");

  // With the keyboard; what it was is kept in view.
  await head("Build").focus();
  await page.keyboard.press("Enter");
  await text.getByText("compiles part 1", { exact: true }).waitFor();
  expect(await page.evaluate('document.activeElement.closest(".log-step")?.textContent')).toMatch(/^Build/);
  await page.keyboard.press("Enter");
  await expect.poll(() => text.count()).toBe(2);

  await page.fill(".log-search", "part 15000");
  await page.locator(".log-found", { hasText: "1 of 1" }).waitFor();
  await text.getByText("compiles part 15000", { exact: true }).waitFor();
  await page.fill(".log-search", "");
  await expect.poll(() => text.count()).toBe(2);

  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.click('.log-tools button:has-text("Download")'),
  ]);
  expect(readFileSync(await download.path(), "utf8").split("\n")).toHaveLength(20_003 + 1);

  // What its steps took is known only once it is over, when the page is read again.
  await page.route(page.url(), async (route) => {
    const response = await route.fetch();
    const body = (await response.text()).replace(/data-took="[^"]*"/, `data-took='{"build":42000}'`);
    await route.fulfill({ response, body });
  });
  await page.evaluate('document.dispatchEvent(new Event("berth:refresh"))');
  await head("Build").getByText("42 s · 20,000 lines").waitFor();
  await page.unroute(page.url());

  await page.goto(`${local.siteUrl}/deployments/${data[0]?.id}#L17`);
  await page.locator(".log-window .hit", { hasText: "compiles part 16" }).waitFor();
  await context.close();
});

it("a log that is cut off goes on, and what comes while somebody reads is counted and moves nothing", async () => {
  const { context, page } = await signedIn(browser);
  const id = await sample();
  let count = 0;
  await page.route("**/api/v1/sites/*/logs?*", (route) => {
    const from = count;
    count += 200;
    const body = Array.from({ length: 200 }, (_, index) =>
      event(from + index + 1, `line ${from + index + 1}`),
    );
    return route.fulfill({
      status: 200,
      contentType: "text/event-stream",
      body: `retry: 100\n\n${body.join("")}`,
    });
  });
  await page.goto(`${local.siteUrl}/sites/${id}/logs`);
  await page.locator(".log-state", { hasText: "200 lines" }).waitFor();
  await page.locator(".log-view").focus();
  await page.keyboard.press("g");
  await page.locator(".log-fresh", { hasText: /\d+00 new/ }).waitFor();
  expect(await page.locator(".log-window").innerText()).toContain("line 1\n");
  await page.click(".log-fresh");
  await page.locator(".log-fresh").waitFor({ state: "hidden" });
  await context.close();
});

it("a line of a log has an address that opens the log there, a range is read again, and the log fills the screen", async () => {
  const { context, page } = await signedIn(browser);
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const id = await sample();
  const asked: URL[] = [];
  const lines = Array.from({ length: 3000 }, (_, index) => event(index + 1, `line ${index + 1}`));
  await context.route("**/api/v1/sites/*/logs?*", (route) => {
    asked.push(new URL(route.request().url()));
    return route.fulfill({
      status: 200,
      contentType: "text/event-stream",
      body: `${lines.join("")}event: end\ndata: {}\n\n`,
    });
  });
  await page.goto(`${local.siteUrl}/sites/${id}/logs`);
  await page.locator(".log-state", { hasText: "3,000 lines" }).waitFor();
  await page.locator(".log-view").focus();
  await page.keyboard.press("g");
  await page.locator(".log-window > div", { hasText: "line 7" }).first().locator("a").click();
  await page.locator(".log-state", { hasText: "copied" }).waitFor();
  const address = await page.evaluate<string>("navigator.clipboard.readText()");
  expect(address).toBe(`${local.siteUrl}/sites/${id}/logs#L7`);

  const other = await context.newPage();
  await other.goto(address.replace("#L7", "#L1500"));
  expect(await other.locator(".log-window .hit").innerText()).toContain("line 1500");
  expect(await other.locator(".log-window").innerText()).not.toContain("line 3000");
  // A minute before the line, whose number is its time in microseconds.
  expect(asked.at(-1)?.searchParams.get("since")).toBe("1969-12-31T23:59:00.002Z");
  await other.close();

  await page.selectOption('.log-tools [aria-label="From when"]', "60");
  await page.locator(".log-state", { hasText: "3,000 lines" }).waitFor();
  const since = Date.parse(asked.at(-1)?.searchParams.get("since") ?? "");
  expect(Math.abs(Date.now() - 3_600_000 - since)).toBeLessThan(60_000);
  await page.click('.log-tools button:has-text("Full screen")');
  await page.locator("berth-log:fullscreen").waitFor();
  await context.close();
});

it("a log's lines tell their day, in the reader's time zone, where they are not all of today", async () => {
  const { context, page } = await signedIn(browser, { timezoneId: "Asia/Kathmandu" });
  await page.clock.setFixedTime("2026-03-02T12:00:00Z");
  const yesterday = { ...lineOf(1, "yesterday"), at: "2026-03-01T18:14:59.000Z" };
  const today = { ...lineOf(2, "today"), at: "2026-03-01T18:15:00.000Z" };
  const times = async (...lines: object[]) => {
    const body = lines.map((line) => `event: line\ndata: ${JSON.stringify(line)}\n\n`).join("");
    await page.route("**/api/v1/sites/*/logs?*", (route) =>
      route.fulfill({
        status: 200,
        contentType: "text/event-stream",
        body: `${body}event: end\ndata: {}\n\n`,
      }),
    );
    await page.goto(`${local.siteUrl}/sites/${await sample()}/logs`);
    await page.locator(".log-window .text", { hasText: "today" }).last().waitFor();
    return page.locator(".log-window time").allInnerTexts();
  };
  expect(await times(today)).toEqual(["00:00:00"]);
  expect(await times(yesterday, today)).toEqual(["1 Mar 23:59:59", "2 Mar 00:00:00"]);
  await context.close();
});

it("a range that is chosen while a log was refused is read once", async () => {
  const { context, page } = await signedIn(browser);
  let reads = 0;
  await page.route("**/api/v1/sites/*/logs?*", (route) => {
    if (!new URL(route.request().url()).searchParams.has("since")) return route.fulfill({ status: 502 });
    reads++;
    const lines = [1, 2, 3].map((seq) => event(seq, `line ${seq}`)).join("");
    // It ends, and is not opened again by the browser.
    const body = `retry: 3600000\n\n${lines}`;
    return route.fulfill({ status: 200, contentType: "text/event-stream", body });
  });
  await page.goto(`${local.siteUrl}/sites/${await sample()}/logs`);
  await page.locator(".log-state", { hasText: "reconnecting" }).waitFor();
  await page.selectOption('.log-tools [aria-label="From when"]', "60");
  await page.locator(".log-state", { hasText: "3 lines" }).waitFor();
  // Longer than the log waited to ask again.
  await page.waitForTimeout(2500);
  expect(reads).toBe(1);
  expect(await page.locator(".log-window .text").allInnerTexts()).toEqual(["line 1", "line 2", "line 3"]);
  await context.close();
});

it("a deployment of a branch with a long name stays within its card, whatever it failed of", async () => {
  const { context, page } = await signedIn(browser);
  const path = `/sites/${await sample()}`;
  const ref = `feature/${"a".repeat(90)}`;
  await api("PATCH", path, { action: "deploy", ref });
  await until(
    async () =>
      (await api<{ data: { status: string }[] }>("GET", `${path}/deployments?limit=1`)).body.data[0]?.status,
    (status) => status === "FAILED",
  );
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 800 });
    await page.goto(local.siteUrl + path);
    const table = page.locator("table", { hasText: ref });
    const [inner, outer] = [
      await table.boundingBox(),
      await page.locator(".card", { has: table }).boundingBox(),
    ];
    expect(inner?.width).toBeLessThanOrEqual(outer?.width ?? 0);
  }
  await context.close();
});

it("requests appear while the page is open, until it is paused", async () => {
  const { context, page } = await signedIn(browser);
  const { id, url } = local.sampleSite;
  await page.goto(`${local.siteUrl}/sites/${id}/requests`);
  await page.locator("live-requests", { hasText: "Live" }).waitFor();
  await page.evaluate("window.isTheSame = true");
  const path = `/seen-${process.pid}`;
  await until(
    async () => {
      await request(url + path);
      return page.locator("#requests", { hasText: path }).count();
    },
    (count) => count > 0,
  );
  expect(await page.evaluate("window.isTheSame")).toBe(true);
  await page.click("live-requests button");
  await page.locator("live-requests", { hasText: "Paused" }).waitFor();
  await context.close();
});

it("a value between two gaps is visible in a chart", async () => {
  const { context, page } = await signedIn(browser);
  await page.goto(`${local.siteUrl}/sites/${local.sampleSite.id}/requests`);
  await page.locator("time-charts canvas").first().waitFor();
  const values = Array.from({ length: 60 }, (_, minute) => (minute === 30 ? 5 : null));
  const lines = [{ label: "p50", tone: "bad", values }];
  const drawn = JSON.stringify({ unit: "ms", digits: 0, limit: null, lines });
  const reds = await page.evaluate<number>(`(async () => {
    const charts = document.querySelector("time-charts");
    const figure = charts.querySelector("figure[data-chart]");
    figure.dataset.chart = ${JSON.stringify(drawn)};
    // It draws whenever it comes into a page.
    charts.parentNode.append(charts);
    await new Promise((resolve) => requestAnimationFrame(resolve));
    const canvas = figure.querySelector("canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return data.filter((red, at) => at % 4 === 0 && red > data[at + 1] + 80).length;
  })()`);
  expect(reds).toBeGreaterThan(0);
  await context.close();
});

it("a change that comes while the page is read again is read too, and so is one whose reading failed", async () => {
  const { context, page } = await signedIn(browser);
  const address = `${local.siteUrl}/sites/${await sample()}`;
  await page.goto(address);
  const changes = () => page.evaluate('void document.dispatchEvent(new Event("berth:refresh"))');
  let reads = 0;
  await page.route(address, async (route) => {
    reads++;
    if (reads === 1) await changes();
    if (reads === 2) return route.abort();
    return route.continue();
  });
  await changes();
  await until(
    () => Promise.resolve(reads),
    (count) => count >= 3,
  );
  await context.close();
});

it("a live part that changes keeps what is open there, and waits while something is typed there", async () => {
  const { context, page } = await signedIn(browser);
  const path = `/sites/${await sample()}`;
  const { body: schedule } = await api<{ id: string }>("POST", `${path}/schedules`, {
    name: "clean-up",
    cron: "30 3 * * *",
    command: "true",
  });
  const address = `${local.siteUrl}${path}/jobs`;
  await page.goto(address);
  const part = page.locator("#schedules");
  /** Once the page is asked for a second time, its first answer is shown. */
  const change = async (enabled: boolean) => {
    await api("PATCH", `/schedules/${schedule.id}`, { enabled });
    for (const _turn of [1, 2])
      await Promise.all([
        page.waitForResponse(address),
        page.evaluate('void document.dispatchEvent(new Event("berth:refresh"))'),
      ]);
  };
  await part.locator("summary").click();
  await page.locator("h1").click();
  await change(false);
  await part.locator(".dot", { hasText: "Off" }).waitFor();
  const command = part.locator("[name=command]");
  await command.fill("npm run clean-up");
  await page.locator("h1").click();
  await change(true);
  expect(await command.inputValue()).toBe("npm run clean-up");
  await command.fill("true");
  await page.locator("h1").click();
  await part.locator(".dot", { hasText: "On" }).waitFor();
  expect(await command.isVisible()).toBe(true);
  await api("DELETE", `/schedules/${schedule.id}`);
  await context.close();
});

it("a menu closes when something else is used, unless something is typed there", async () => {
  const { context, page } = await signedIn(browser);
  const { siteId } = await createSite({ githubUrl: "git.invalid/owner/repository" });
  await api("PATCH", `/sites/${siteId}`, { envVariables: [{ key: "IN_MENU", value: "1" }] });
  await page.goto(`${local.siteUrl}/sites/${siteId}/variables`);
  const [menu, value] = ["summary", "[name=value]"].map((inside) =>
    page.locator('[id="edit-IN_MENU"]').locator(inside),
  );
  await menu?.click();
  await page.locator("h1").click();
  expect(await value?.isVisible()).toBe(false);
  await menu?.click();
  await value?.fill("2");
  await page.locator("h1").click();
  expect(await value?.isVisible()).toBe(true);
  await page.keyboard.press("Escape");
  expect(await value?.isVisible()).toBe(false);
  await api("DELETE", `/sites/${siteId}`);
  await context.close();
});

it("the page of something that is deleted meanwhile says so", async () => {
  const { context, page } = await signedIn(browser);
  const { siteId } = await createSite({ githubUrl: "git.invalid/owner/repository" });
  await page.goto(`${local.siteUrl}/sites/${siteId}`);
  await api("DELETE", `/sites/${siteId}`);
  // As an event would, once the page listens.
  await page.evaluate('void document.dispatchEvent(new Event("berth:refresh"))');
  await page.locator("main > [role=alert]", { hasText: "This no longer exists" }).waitFor();
  await context.close();
});

it("what a field means is told while it is typed: when a schedule runs, and what each replica has", async () => {
  const { context, page } = await signedIn(browser);
  const id = await sample();
  await page.goto(`${local.siteUrl}/sites/${id}/jobs`);
  await page.fill("#form-schedule [name=cron]", "*/15 9-17 * * mon-fri");
  const told = page.locator("#form-schedule .told");
  await told
    .filter({ hasText: "Every 15 minutes from 09:00 to 17:59 UTC, Monday to Friday, next" })
    .waitFor();
  await page.fill("#form-schedule [name=cron]", "0 0 30 2 *");
  await told.filter({ hasText: "This date never occurs" }).waitFor();
  await page.goto(`${local.siteUrl}/sites/${id}/settings`);
  await page.fill("#form-scale [name=replicas]", "2");
  await page.locator("#form-scale .told", { hasText: /^Each has \d+ MB of memory/ }).waitFor();
  await page.fill("#form-scale [name=replicas]", "99");
  await page.locator("#form-scale .told", { hasText: "at most" }).waitFor();
  await context.close();
});

it("the balance of credits stands in the top bar, and follows without a reload", async () => {
  const { context, page } = await signedIn(browser);
  await page.goto(`${local.siteUrl}/sites`);
  const { email } = (await api<{ email: string }>("GET", "/account")).body;
  const { balance } = (await api<{ balance: number }>("GET", "/credits")).body;
  const shownAs = (credits: number) =>
    page.locator("#balance", { hasText: `${credits.toLocaleString("en-US")} credit` });
  await shownAs(balance).waitFor();
  await page.evaluate("window.isTheSame = true");
  await api("POST", "/credits/grants", { email, amount: 3 });
  await shownAs(balance + 3).waitFor();
  expect(await page.evaluate("window.isTheSame")).toBe(true);
  await context.close();
});

it("a page whose events were refused shows what changed meanwhile, and follows again", async () => {
  const { context, page } = await signedIn(browser);
  let [isAway, refused] = [true, 0];
  await page.route("**/api/v1/events", (route) => {
    if (!isAway) return route.continue();
    refused++;
    return route.fulfill({ status: 502 });
  });
  await page.goto(`${local.siteUrl}/sites`);
  await page.evaluate("window.isTheSame = true");
  await expect.poll(() => refused).toBeGreaterThan(0);
  const { email } = (await api<{ email: string }>("GET", "/account")).body;
  const { balance } = (await api<{ balance: number }>("GET", "/credits")).body;
  const more = async (amount: number, shown: number): Promise<void> => {
    await api("POST", "/credits/grants", { email, amount });
    isAway = false;
    await page.locator("#balance", { hasText: `${shown.toLocaleString("en-US")} credit` }).waitFor();
  };
  await more(3, balance + 3);
  await more(4, balance + 7);
  expect(await page.evaluate("window.isTheSame")).toBe(true);
  await context.close();
});

it.each([true, false])(
  "deployments are filtered, two are compared, and a site is copied up to its payment; with a script: %s",
  async (javaScriptEnabled) => {
    const { context, page } = await signedIn(browser, { javaScriptEnabled });
    const id = await sample();
    // With the key, where the other requests of these tests have a session.
    await request(`${local.baseUrl}/sites/${id}`, {
      method: "PATCH",
      headers: { Authorization: `Bearer ${local.apiKey}`, "Content-Type": "application/json" },
      body: JSON.stringify({ action: "deploy" }),
    });
    await until(
      async () => (await api<{ data: { status: string }[] }>("GET", `/sites/${id}/deployments`)).body.data[0],
      (newest) => newest?.status === "LIVE",
    );
    await page.goto(`${local.siteUrl}/sites/${id}/deployments`);
    await page.selectOption("main [name=trigger]", "payment");
    await page.click('main .filters button:text-is("Show")');
    await page.locator("#deployments tbody tr").first().waitFor();
    expect(await page.locator("#deployments tbody tr").count()).toBe(1);
    await page.click('main a:text-is("Show all")');
    await page.locator("#deployments", { hasText: /the (key|command line) “/ }).waitFor();
    await page.click('#compare button:text-is("Compare")');
    await page.locator("#differences", { hasText: "Earlier" }).waitFor();

    await page.goto(`${local.siteUrl}/sites/${id}`);
    await page.click("#site-menu summary");
    await page.click('#site-menu a:has-text("Copy this site")');
    const name = `copy-${process.pid}-${javaScriptEnabled ? "a" : "b"}`;
    await page.fill("#form-clone [name=name]", name);
    await page.click("#form-clone button[type=submit]");
    await page.waitForURL(/\/invoice\//);
    await page.locator("main", { hasText: name }).waitFor();
    const { data } = (await api<{ data: { id: string; name: string }[] }>("GET", "/sites")).body;
    const copy = data.find((one) => one.name === name)?.id ?? "";
    await api("DELETE", `/sites/${copy}`);
    await context.close();
  },
);

it.each([true, false])(
  "the address of a site is a QR code beside it; with a script: %s",
  async (hasScript) => {
    const phone = { width: 320, height: 800 };
    const { context, page } = await signedIn(browser, { javaScriptEnabled: hasScript, viewport: phone });
    await page.goto(`${local.siteUrl}/sites/${await sample()}`);
    const code = page.locator("#address-qr svg");
    expect(await code.isVisible()).toBe(false);
    await page.click("#address-qr summary");
    await code.waitFor();
    const box = await code.boundingBox();
    expect(box && box.x >= 0 && box.x + box.width <= phone.width).toBe(true);
    await context.close();
  },
);

it("on a desk and a phone, the head of a deployment's page covers nothing of what a form did, and a long name without hyphens cuts nothing off at home", async () => {
  const { context, page } = await signedIn(browser);
  const id = await sample();
  const { data } = (await api<{ data: { id: string }[] }>("GET", `/sites/${id}/deployments`)).body;
  const input = { name: "w".repeat(63), githubUrl: "git.invalid/owner/repository" };
  const { siteId } = await createSite(input);
  const between = `(() => {
    const [main, head] = ["#main", ".sticky"].map((part) => document.querySelector(part));
    const flash = document.createElement("div");
    flash.className = "callout flash";
    main.prepend(flash);
    return head.getBoundingClientRect().top - flash.getBoundingClientRect().bottom;
  })()`;
  const cut = `[...document.querySelectorAll("#home table")]
    .filter((table) => table.offsetWidth > table.parentElement.clientWidth)
    .map((table) => table.parentElement.querySelector("h2").innerText)`;
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await page.goto(`${local.siteUrl}/deployments/${data[0]?.id}`);
    expect([width, await page.evaluate<number>(between)]).toEqual([width, 0]);
    await page.goto(local.siteUrl);
    expect(await page.locator("#home td", { hasText: input.name }).count()).toBe(3);
    expect([width, await page.evaluate<string[]>(cut)]).toEqual([width, []]);
  }
  await api("DELETE", `/sites/${siteId}`);
  await context.close();
});

it("a tab in the background says by its icon and title how a deployment goes", async () => {
  const { context, page } = await signedIn(browser);
  await page.addInitScript('Object.defineProperty(document, "hidden", { get: () => true });');
  const id = await sample();
  await page.goto(`${local.siteUrl}/sites/${id}/deployments`);
  await page.evaluate("window.isTheSame = true");
  await api("PATCH", `/sites/${id}`, { action: "deploy", rebuild: true });
  const icon = (tone: string) =>
    page.locator(`link[rel=icon][data-state=${tone}]`).waitFor({ state: "attached", timeout: 120_000 });
  await icon("busy");
  expect(await page.title()).toMatch(/^Deploying · /);
  await icon("good");
  expect(await page.title()).not.toContain("Deploying");
  expect(await page.evaluate("window.isTheSame")).toBe(true);
  await context.close();
});

it("a button copies a value as it is, however often it is pressed, and says so where it cannot", async () => {
  const { context, page } = await signedIn(browser);
  const id = await sample();
  const value = `first\r\n${"long".repeat(500)}`;
  await api("PATCH", `/sites/${id}`, { envVariables: [{ key: "COPIED", value }] });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.clock.install();
  await page.goto(`${local.siteUrl}/sites/${id}/variables`);
  await page.click("#value-COPIED summary");
  const button = page.locator("#value-COPIED [data-copy]");
  const says = (text: string) => expect.poll(() => button.innerText()).toBe(text);
  await page.clock.pauseAt(Date.now() + 60_000);
  await button.click();
  await says("Copied");
  await page.clock.runFor(1000);
  // As on a page without HTTPS.
  const copied = await page.evaluate("navigator.clipboard.readText()");
  await page.evaluate('Object.defineProperty(navigator, "clipboard", { value: undefined })');
  await button.click();
  await says("Not copied: press Ctrl+C");
  expect(copied).toBe(value);
  expect(await page.evaluate("getSelection().toString().length")).toBeGreaterThan(2000);
  // The first press' time is up, the second's is not.
  await page.clock.runFor(1000);
  expect(await button.innerText()).toBe("Not copied: press Ctrl+C");
  await page.clock.runFor(1000);
  await says("Copy");
  await api("PATCH", `/sites/${id}`, { envVariables: [{ key: "COPIED", value: null }] });
  await context.close();
});

it("the focus stays on what is replaced, and is on the page that a form without a message leads to", async () => {
  const { context, page } = await signedIn(browser);
  const id = await sample();
  await page.goto(`${local.siteUrl}/sites/${id}`);
  const focused = () =>
    page.evaluate<string>(
      "(({ id, textContent, localName }) => id || `${localName} ${textContent}`)(document.activeElement)",
    );
  const { email } = (await api<{ email: string }>("GET", "/account")).body;
  const before = await page.locator("#balance").innerText();
  await page.focus("#balance");
  await api("POST", "/credits/grants", { email, amount: 1 });
  await expect.poll(() => page.locator("#balance").innerText()).not.toBe(before);
  expect(await focused()).toBe("balance");
  // A button of a part that changes: it does not keep the part from being shown.
  await page.focus("#form-restart button");
  await page
    .locator("#site-head")
    .evaluate((head) => (head as unknown as { append(text: string): void }).append("older"));
  await page.evaluate('void document.dispatchEvent(new Event("berth:refresh"))');
  await expect.poll(() => page.locator("#site-head").innerText()).not.toContain("older");
  expect(await focused()).toBe("button Restart");
  await page.focus("#form-deploy button");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/deployments\/dep_/);
  await expect.poll(focused).toBe("main");
  await expect.poll(async () => (await site(id)).status, { timeout: 60_000 }).toBe("RUNNING");
  await context.close();
});

it("a refused form has the focus in the field to correct, so that the keys that follow are no shortcuts", async () => {
  const { context, page } = await signedIn(browser);
  const here = `${local.siteUrl}/sites/${await sample()}`;
  const refused = async (form: string, field: string): Promise<void> => {
    await page.fill(`${form} ${field}`, "not one");
    await page.keyboard.press("Enter");
    await page.locator(`${form} [data-reason]`).waitFor();
    expect(await page.locator(`${form} ${field}:focus`).count()).toBe(1);
  };
  await page.goto(`${here}/domains`);
  await refused("#form-add", "[name=domain]");
  await page.goto(`${here}/settings`);
  await page.click("#delete summary");
  await refused("#form-delete", "[name=confirm]");
  await context.close();
});

it("a page whose session has ended says so by itself, with a way to sign in, until somebody has signed in again", async () => {
  const { context, page } = await signedIn(browser);
  await page.goto(`${local.siteUrl}/sites`);
  await page.evaluate("window.isTheSame = true");
  const other = await context.newPage();
  await other.goto(`${local.siteUrl}/account`);
  await other.evaluate('document.querySelector("form[action=\\"/sign-out\\"]").submit()');
  await other.waitForURL((url) => url.pathname !== "/account");
  const told = page.locator("main [role=alert]", { hasText: "Your session has ended" });
  await told.waitFor();
  expect(await told.getByText("Sign in").getAttribute("href")).toBe(`${local.siteUrl}/sign-in?next=%2Fsites`);
  await other.goto(`${local.siteUrl}/sign-in`);
  await fillSignIn(other, local);
  await told.waitFor({ state: "detached" });
  expect(await page.evaluate("window.isTheSame")).toBe(true);
  await context.close();
});

it("whoever signs in again from a page with something typed does so in another tab, and sends it afterwards", async () => {
  const { context, page } = await signedIn(browser);
  await page.goto(`${local.siteUrl}/databases/new`);
  await page.fill("main [name=name]", "typed before");
  const other = await context.newPage();
  await other.goto(`${local.siteUrl}/account`);
  await other.evaluate('document.querySelector("form[action=\\"/sign-out\\"]").submit()');
  await other.waitForURL((url) => url.pathname !== "/account");
  await page.locator("main form[data-enhanced] button.primary").click();
  const told = page.locator("main [role=alert]", { hasText: "nothing is lost" });
  const [tab] = await Promise.all([
    context.waitForEvent("page"),
    told.getByText("Sign in", { exact: true }).click(),
  ]);
  await fillSignIn(tab, local);
  await tab.waitForURL((url) => url.pathname !== "/sign-in");
  expect(await page.inputValue("main [name=name]")).toBe("typed before");
  await page.locator("main form[data-enhanced] button.primary").click();
  await page.locator("main [name=name][aria-invalid=true]").waitFor();
  expect(await page.inputValue("main [name=name]")).toBe("typed before");
  await context.close();
});

it("a form whose answer is late says that it is being sent, and one whose answer was lost not that it never arrived", async () => {
  const { context, page } = await signedIn(browser);
  await page.goto(`${local.siteUrl}/databases/new`);
  await page.fill("main [name=name]", "typed before");
  const lost = Promise.withResolvers<void>();
  await page.route("**/databases/new", async (route) => {
    await lost.promise;
    await route.abort("connectionreset");
  });
  await page.locator("main form[data-enhanced] button.primary").click();
  await page
    .locator("body > [role=status]", { hasText: "Waiting for the service" })
    .waitFor({ state: "attached" });
  lost.resolve();
  await page.locator("main [role=alert]", { hasText: "may have received the form" }).waitFor();
  expect(await page.inputValue("main [name=name]")).toBe("typed before");
  expect(await page.locator("body > [role=status]", { hasText: "Waiting" }).count()).toBe(0);
  await context.close();
});

it("what is still going on takes longer by the second while nothing happens", async () => {
  const { context, page } = await signedIn(browser);
  await page.goto(`${local.siteUrl}/sites/${await sample()}`);
  await page.evaluate(`(() => {
    const step = document.createElement("span");
    step.dataset.counts = "59000";
    document.querySelector("main").append(step);
  })()`);
  await page.locator("main > [data-counts]", { hasText: /1 min [1-9]/ }).waitFor();
  await context.close();
});

it("variables are staged, whatever else is done on their page, and saved as one version", async () => {
  const { context, page } = await signedIn(browser);
  const id = await sample();
  const before = (await api<{ data: unknown[] }>("GET", `/sites/${id}/env`)).body.data.length;
  await page.goto(`${local.siteUrl}/sites/${id}/variables`);
  await page.fill("#form-many [name=file]", "ONE=1\n2TWO=2\n\n");
  await page.locator("#form-many .known", { hasText: "Line 2: write NAME=value" }).waitFor();
  await page.fill("#form-many [name=file]", "ONE=1\nTWO='2 and more'\n");
  await page.click('#form-many button:has-text("Add all")');
  await page.fill("#form-set [name=key]", "THREE");
  await page.fill("#form-set [name=value]", "3");
  await page.click('#form-set button:text-is("Add")');
  expect(await page.locator(".staged strong").innerText()).toBe("3 changes");
  expect(await page.locator("[data-staged]").innerText()).toBe("3 changes not saved");
  expect((await api<{ data: unknown[] }>("GET", `/sites/${id}/env`)).body.data).toHaveLength(before);
  // Another form of the page has its answer shown in place of this one.
  await page.click("#generate summary");
  await page.fill("#form-generate [name=key]", "RANDOM");
  await page.click("#form-generate button");
  await page.locator("[data-flash]", { hasText: "RANDOM has a new random value." }).waitFor();
  expect(await page.locator(".staged strong").innerText()).toBe("3 changes");
  await page.click('.staged button:text-is("Save")');
  await page.locator("[data-flash]", { hasText: "Saved." }).waitFor();
  expect((await api<{ data: unknown[] }>("GET", `/sites/${id}/env`)).body.data).toHaveLength(before + 2);
  expect(await page.locator(".staged").isVisible()).toBe(false);
  await page.click('tr[data-key=THREE] button:has-text("Remove")');
  expect(await page.locator(".staged strong").innerText()).toBe("1 change");
  await page.click(".staged [data-discard]");
  expect(await page.locator(".staged").isVisible()).toBe(false);
  // What had the focus is hidden: reading goes on at what comes next, not at the top of the page.
  expect(await page.locator("#form-set [name=key]:focus").count()).toBe(1);
  await page.click('summary[aria-label="Edit: THREE"]');
  await page.fill("#edit-THREE [name=value]", "4");
  await page.press("#edit-THREE [data-saves] button", "Enter");
  expect(await page.locator('summary[aria-label="Edit: THREE"]:focus').count()).toBe(1);
  await page.click(".staged [data-discard]");
  // That the newest values are in service is shown once they are, without a reload.
  await page.locator("#waiting", { hasText: "does not have the newest values yet" }).waitFor();
  await page.locator("main tr", { hasText: "not in service yet" }).first().waitFor();
  await api("PATCH", `/sites/${id}`, { action: "restart" });
  await page.locator("#waiting .callout").waitFor({ state: "detached", timeout: 60_000 });
  await expect.poll(() => page.locator("main tr", { hasText: "not in service yet" }).count()).toBe(0);
  // A secret would lead who copies the site to its variables.
  const envVariables = ["ONE", "TWO", "THREE", "RANDOM"].map((key) => ({ key, value: null }));
  await api("PATCH", `/sites/${id}`, { envVariables });
  await context.close();
});

it("staged variables are there again where saving is refused; those that a link sets are told at once, and each can be taken back", async () => {
  const { context, page } = await signedIn(browser);
  const { siteId } = await createSite({ githubUrl: "git.invalid/owner/repository" });
  const database = { name: `linked-${process.pid}`, type: "postgresql", billingTerm: 1 };
  const { databaseId } = (await api<{ databaseId: string }>("POST", "/databases", database)).body;
  await api("POST", `/databases/${databaseId}/links`, { siteId });
  await page.goto(`${local.siteUrl}/sites/${siteId}/variables`);
  const warning = { hasText: "The link to a database sets DATABASE_URL" };
  await page.fill("#form-set [name=key]", "DATABASE_URL");
  await page.locator("#form-set .known", warning).waitFor();
  await page.fill("#form-set [name=key]", "");
  await page.fill("#form-many [name=file]", "ONE=1\nDATABASE_URL=mine\nTWO='2 and \"more\"'\n");
  await page.locator("#form-many .known", warning).waitFor();
  await page.check("#form-many [name=encrypted]");
  await page.click('#form-many button:has-text("Add all")');
  await page.click('.staged button:text-is("Save")');
  await page.locator("main [role=alert]", { hasText: "DATABASE_URL is set by the link" }).waitFor();
  expect(await page.locator(".staged strong").innerText()).toBe("3 changes");
  await page.click('button[aria-label="Take back: DATABASE_URL"]');
  expect(await page.locator(".staged strong").innerText()).toBe("2 changes");
  await page.click('.staged button:text-is("Save")');
  await page.locator("[data-flash]", { hasText: "Saved." }).waitFor();
  expect(await page.locator(".staged").isVisible()).toBe(false);
  expect((await site(siteId)).envVariables).toEqual(
    ["ONE", "TWO"].map((key) => ({ key, value: null, encrypted: true, scope: "both" })),
  );
  await api("DELETE", `/databases/${databaseId}`);
  await api("DELETE", `/sites/${siteId}`);
  await context.close();
});

it("a form that would lose what is staged or typed beside it is sent only once that is agreed to", async () => {
  const { context, page } = await signedIn(browser);
  const { siteId } = await createSite({ githubUrl: "git.invalid/owner/repository" });
  const asked: string[] = [];
  let isAgreed = false;
  page.on("dialog", (dialog) => {
    asked.push(dialog.message());
    void (isAgreed ? dialog.accept() : dialog.dismiss());
  });
  const id = await sample();
  await page.goto(`${local.siteUrl}/sites/${id}/variables`);
  await page.fill("#form-set [name=key]", "STAGED");
  await page.click('#form-set button:text-is("Add")');
  await page.click('#site-head button:has-text("Restart")');
  expect(asked).toEqual(["Other changes on this page are not saved and will be lost. Continue?"]);
  expect(await page.locator(".staged strong").innerText()).toBe("1 change");
  isAgreed = true;
  await page.goto(`${local.siteUrl}/sites/${siteId}/settings`);
  isAgreed = false;
  await page.fill("#form-build [name=buildCommand]", "make");
  await page.fill("#form-run [name=startCommand]", "make run");
  await page.click("#form-run button[type=submit]");
  expect(await page.inputValue("#form-build [name=buildCommand]")).toBe("make");
  expect((await site(siteId)).startCommand).toBe(null);
  isAgreed = true;
  await page.click("#form-run button[type=submit]");
  await page.locator("[data-flash]", { hasText: "Saved." }).waitFor();
  expect((await site(siteId)).startCommand).toBe("make run");
  // What stands alone is not asked about.
  asked.length = 0;
  await page.fill("#form-build [name=buildCommand]", "make");
  await page.click("#form-build button[type=submit]");
  await expect.poll(async () => (await site(siteId)).buildCommand).toBe("make");
  expect(asked).toEqual([]);
  await api("DELETE", `/sites/${siteId}`);
  await context.close();
});

it("what was typed stays where an error answers its form, and the error is told", async () => {
  const { context, page } = await signedIn(browser);
  await page.goto(`${local.siteUrl}/sites/${await sample()}/variables`);
  const told = async (text: string, changes: string) => {
    await page.click('.staged button:text-is("Save")');
    await page.locator("main > [role=alert]", { hasText: text }).waitFor();
    expect(await page.locator(".staged strong").innerText()).toBe(changes);
  };
  const large = Array.from({ length: 40 }, (_, index) => `LARGE_${index}=${"x".repeat(30_000)}`);
  await page.fill("#form-many [name=file]", large.join("\n"));
  await page.click('#form-many button:has-text("Add all")');
  await told("Too large. What you sent is larger than this page accepts.", "40 changes");
  await page.click(".staged [data-discard]");
  await page.fill("#form-set [name=key]", "SMALL");
  await page.click('#form-set button:text-is("Add")');
  const sendsTo = (path: string) =>
    page.evaluate(`document.querySelector(".staged").setAttribute("action", "${path}")`);
  await sendsTo("/sites/site_unknown/variables");
  await told("Not found. This page does not exist.", "1 change");
  await page.route("**/away", (route) => route.fulfill({ status: 502, body: "Bad gateway" }));
  await sendsTo("/away");
  await told("The service answered with an error (502).", "1 change");
  await context.close();
});

it("a new site's name and port follow the repository until they are typed", async () => {
  const { context, page } = await signedIn(browser);
  const [hello, notes] = ["hello-docker", "notes-app"].map((name) => `${gitHost}/examples/${name}.git`);
  await page.goto(`${local.siteUrl}/sites/new`);
  const value = (name: string) => page.inputValue(`main [name=${name}]`);
  await page.fill("main [name=githubUrl]", hello ?? "");
  await expect.poll(() => value("name")).toBe("hello-docker");
  await page.fill("main [name=githubUrl]", notes ?? "");
  await expect.poll(() => value("name")).toBe("notes-app");
  await page.fill("main [name=name]", "mine");
  const checked = page.waitForResponse((answer) => answer.request().method() === "POST");
  await page.fill("main [name=githubUrl]", hello ?? "");
  await checked;
  await page.locator("#found:not([aria-busy])").waitFor();
  expect(await value("name")).toBe("mine");
  await context.close();
});

it("a new site's name and port stay as they were typed where the form is refused, and where a browser restores it", async () => {
  const { context, page } = await signedIn(browser);
  const value = async (name: string) => {
    await page.locator("#found > .callout").waitFor();
    return page.inputValue(`main [name=${name}]`);
  };
  await page.goto(`${local.siteUrl}/sites/new?sample=1`);
  await page.fill("main [name=port]", "8080");
  expect(await value("port")).toBe("8080");
  await page.click('.crumbs a:text-is("Sites")');
  await page.waitForURL(/\/sites$/);
  await page.goBack();
  expect(await value("port")).toBe("8080");
  await page.fill("main [name=name]", "typed");
  await page.fill("main [name=variables]", "not a variable");
  await page.click("#total button");
  await page.locator("[name=variables][aria-invalid=true]").waitFor();
  expect([await value("name"), await value("port")]).toEqual(["typed", "8080"]);
  await context.close();
});

it("a repository is checked without its form being sent: a token and what is open stay", async () => {
  const { context, page } = await signedIn(browser);
  await page.goto(`${local.siteUrl}/sites/new`);
  await page.fill("main [name=githubUrl]", `${gitHost}/examples/hello-docker.git`);
  await page.click('summary:has-text("A private repository")');
  await page.fill("main [name=gitToken]", "a-token");
  await page.press("main [name=gitToken]", "Enter");
  await page.locator("#found > .callout").waitFor();
  expect(await page.inputValue("main [name=gitToken]")).toBe("a-token");
  expect(await page.locator("main [name=gitToken]").isVisible()).toBe(true);
  await context.close();
});

it("a repository that could not be looked at is said to be so where the answer says why, and can be looked at again", async () => {
  const { context, page } = await signedIn(browser);
  await page.goto(`${local.siteUrl}/sites/new`);
  const found = page.locator("#found");
  await page.fill("main [name=githubUrl]", "git.invalid/owner/repository");
  await page.fill("main [name=branch]", "feature/");
  await found.filter({ hasText: "The repository was not checked. Branch: a Git branch name." }).waitFor();
  expect(await found.getAttribute("aria-busy")).toBeNull();
  let asked = 0;
  await page.route("**/sites/new", (route) => (asked++ === 0 ? route.abort() : route.continue()));
  await page.fill("main [name=branch]", "main");
  await expect.poll(() => asked).toBe(1);
  await expect.poll(() => found.innerText()).toBe("");
  await page.fill("main [name=branch]", "main");
  await found.filter({ hasText: "git.invalid" }).waitFor();
  await context.close();
});
