import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import * as z from "zod";
import { bundleCli } from "./lib/bundle.ts";
import { projectRoot } from "./lib/project-root.ts";
import { terminalPage } from "./lib/terminal-picture.ts";

/** Takes the pictures of docs/screenshots from a running `npm start`, signed in as its operator. */
const { values: flags } = parseArgs({ options: { "state-dir": { type: "string", default: ".berth" } } });
const Local = z.object({
  siteUrl: z.url(),
  email: z.string(),
  password: z.string(),
  apiKey: z.string(),
  sampleSite: z.object({ id: z.string() }),
});
const local = Local.parse(JSON.parse(readFileSync(join(resolve(flags["state-dir"]), "local.json"), "utf8")));
const site = `/sites/${local.sampleSite.id}`;
const desk = { width: 1280, height: 800 };
const phone = { width: 390, height: 844 };

const pictures = [
  { name: "home", path: "/", viewport: desk, colorScheme: "light" },
  { name: "site", path: site, viewport: desk, colorScheme: "light" },
  { name: "site-dark", path: site, viewport: desk, colorScheme: "dark" },
  { name: "site-phone", path: site, viewport: phone, colorScheme: "light" },
  { name: "deployments", path: `${site}/deployments`, viewport: desk, colorScheme: "light" },
  { name: "logs", path: `${site}/logs`, viewport: desk, colorScheme: "dark" },
  { name: "variables", path: `${site}/variables`, viewport: desk, colorScheme: "light" },
  { name: "settings", path: `${site}/settings`, viewport: desk, colorScheme: "light" },
  { name: "new-site", path: "/sites/new?sample=1", viewport: desk, colorScheme: "light" },
  { name: "billing", path: "/billing", viewport: desk, colorScheme: "light" },
  { name: "assistant", path: "/assistant", viewport: desk, colorScheme: "light" },
  { name: "operator", path: "/operator", viewport: desk, colorScheme: "light" },
  { name: "docs", path: "/docs", viewport: desk, colorScheme: "light" },
] as const;

const folder = join(projectRoot, "docs", "screenshots");
mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: desk });
const page = await context.newPage();
await page.goto(`${local.siteUrl}/sign-in`);
await page.fill("input[name=email]", local.email);
await page.fill("input[name=password]", local.password);
await page.click("main button[type=submit]");
await page.waitForURL((url) => url.pathname !== "/sign-in");
for (const { name, path, viewport, colorScheme } of pictures) {
  await page.setViewportSize(viewport);
  await page.emulateMedia({ colorScheme });
  // A page with an open stream of events is never idle: what it loads at first is all there is.
  await page.goto(local.siteUrl + path, { waitUntil: "load" });
  await page.evaluate("document.fonts.ready");
  if (name === "logs") await page.locator(".log-window > div").first().waitFor();
  await page.screenshot({ path: join(folder, `${name}.png`) });
  console.log(`docs/screenshots/${name}.png`);
}
const program = join(tmpdir(), `berth-${process.pid}.mjs`);
await bundleCli(program);
const commands = [
  ["sites", "list"],
  ["sites", "diagnose"],
  ["deployments", "list", "--limit", "5"],
  ["metrics", "--minutes", "3"],
];
const env = { BERTH_URL: local.siteUrl, BERTH_TOKEN: local.apiKey, BERTH_SITE: local.sampleSite.id };
await page.setContent(terminalPage(program, commands, env));
rmSync(program);
await page.locator("body").screenshot({ path: join(folder, "terminal.png") });
console.log("docs/screenshots/terminal.png");
await browser.close();
