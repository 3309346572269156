import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launchBrowser, signedIn } from "./browser.ts";
import { event } from "./log-events.ts";
import { local } from "./service.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

it("a log of 50,000 lines scrolls at 60 frames, is searched and filtered, and takes nothing as HTML", async () => {
  const { context, page } = await signedIn(browser);
  const lines = Array.from({ length: 50_000 }, (_, index) =>
    event(
      index + 1,
      index === 41_999
        ? "the needle <img src=x onerror=alert(1)>"
        : `\u001b[32mline\u001b[0m ${index + 1} of a log`,
    ),
  );
  await page.route("**/api/v1/sites/*/logs?*", (route) =>
    route.fulfill({
      status: 200,
      contentType: "text/event-stream",
      body: `${lines.join("")}event: end\ndata: {}\n\n`,
    }),
  );
  await page.goto(`${local.siteUrl}/sites/${local.sampleSite.id}/logs`);
  await page.locator(".log-state", { hasText: "50,000 lines · complete" }).waitFor();
  // A screen reader is told how the log stands, not each line's number.
  expect(await page.locator("berth-log [role=status]").allTextContents()).toEqual(["", "Log: complete"]);
  expect(await page.locator(".log-window > div").count()).toBeLessThan(150);
  expect(await page.locator(".log-window .a2").first().innerText()).toBe("line");
  // A quarter of the frames may be late: two processors run the whole stack as well.
  const frames = await page.evaluate<number[]>(`new Promise((resolve) => {
    const view = document.querySelector(".log-view");
    const times = [];
    let last = performance.now();
    let step = 0;
    const next = (now) => {
      times.push(now - last);
      last = now;
      view.scrollTop = (view.scrollHeight * (step % 97)) / 97 + step * 18;
      if (++step < 120) requestAnimationFrame(next);
      else resolve(times.slice(1));
    };
    requestAnimationFrame(next);
  })`);
  const ordered = frames.toSorted((a, b) => a - b);
  expect(ordered[Math.floor(ordered.length * 0.75)]).toBeLessThan(20);

  await page.keyboard.press("Escape");
  await page.locator(".log-view").focus();
  await page.keyboard.press("/");
  await page.keyboard.type("needle");
  await page.locator(".log-found", { hasText: "1 of 1" }).waitFor();
  expect(await page.locator(".log-window .hit").innerText()).toContain(
    "the needle <img src=x onerror=alert(1)>",
  );
  expect(await page.locator(".log-window img").count()).toBe(0);
  await page.selectOption(".log-tools select", "stderr");
  await page.locator(".log-state", { hasText: "5,000 lines" }).waitFor();
  await page.selectOption(".log-tools select", "");
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.click('.log-tools button:has-text("Download")'),
  ]);
  expect(download.suggestedFilename()).toMatch(/\.log$/);
  await context.close();
});

it("no line of a log is cut off, whatever is in it, on a desk, on a phone and where long lines are wrapped", async () => {
  const { context, page } = await signedIn(browser);
  const lines = [
    "\tat org.example.Main\t(Main.java:1)\tat\torg.example.Other\tand\tmore",
    '{"level":"error","msg":"no","stack":"Error: no\\n    at one.two.three (four.js:5)\\n    at six"}',
    "(a).(b).(c).".repeat(40),
    `word ${" ".repeat(150)} word`,
    "日本語のログ。".repeat(20),
    "a".repeat(400),
  ].map((text, index) => event(index + 1, text));
  await page.route("**/api/v1/sites/*/logs?*", (route) =>
    route.fulfill({
      status: 200,
      contentType: "text/event-stream",
      body: `${lines.join("")}event: end\ndata: {}\n\n`,
    }),
  );
  for (const width of [1280, 700, 391, 390, 389, 320]) {
    await page.setViewportSize({ width, height: 844 });
    await page.goto(`${local.siteUrl}/sites/${local.sampleSite.id}/logs`);
    await page.locator(".log-state", { hasText: "6 lines · complete" }).waitFor();
    const cut = await page.evaluate<string[]>(`[...document.querySelectorAll(".log-window > div")]
      .filter((row) => row.querySelector(".text").getBoundingClientRect().height > 0)
      .filter((row) => row.scrollHeight > row.clientHeight)
      .map((row) => row.innerText)`);
    expect([width, cut]).toEqual([width, []]);
  }
  await context.close();
});
