import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import * as z from "zod";
import { bundleCli } from "./lib/bundle.ts";
import { call } from "./lib/client.ts";
import { projectRoot } from "./lib/project-root.ts";
import { terminalPage, typedInTerminal } from "./lib/terminal-picture.ts";

/**
 * Takes the pictures of docs/screenshots from a running `npm start`, signed in as its operator; with --only <name> one of
 * them.
 */
const { values: flags } = parseArgs({
  options: {
    "state-dir": { type: "string", default: ".berth" },
    only: { type: "string" },
  },
});
const isWanted = (name: string): boolean => flags.only === undefined || flags.only === name;
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
  if (!isWanted(name)) continue;
  await page.setViewportSize(viewport);
  await page.emulateMedia({ colorScheme });
  // A page with an open stream of events is never idle: what it loads at first is all there is.
  await page.goto(local.siteUrl + path, { waitUntil: "load" });
  await page.evaluate("document.fonts.ready");
  if (name === "logs") await page.locator(".log-window > div").first().waitFor();
  await page.screenshot({ path: join(folder, `${name}.png`) });
  console.log(`docs/screenshots/${name}.png`);
}
if (isWanted("terminal")) {
  // A page of its own: the dashboard's takes no HTML that is not of its own scripts (Trusted Types).
  const blank = await browser.newPage({ viewport: desk });
  await blank.setContent(await firstDeployment());
  await blank.evaluate("document.fonts.ready");
  await blank.locator("body").screenshot({ path: join(folder, "terminal.png") });
  console.log("docs/screenshots/terminal.png");
}
await browser.close();

/** A person's first deployment from a checkout, whose site is deleted afterwards. */
async function firstDeployment(): Promise<string> {
  const home = mkdtempSync(join(tmpdir(), "berth-terminal-"));
  const cwd = join(home, "hello-docker");
  const env = {
    PATH: `${home}:${process.env["PATH"]}`,
    HOME: home,
    BERTH_URL: local.siteUrl,
    BERTH_TOKEN: local.apiKey,
  };
  try {
    await bundleCli(join(home, "berth.mjs"));
    symlinkSync("berth.mjs", join(home, "berth"));
    const sample = await call<{ githubUrl: string }>(
      "GET",
      `${local.siteUrl}/api/v1/sites/${local.sampleSite.id}`,
      local.apiKey,
    );
    const repository = `http://${sample.body.githubUrl.replace("notes-app", "hello-docker")}`;
    execFileSync("git", ["clone", "--quiet", repository, cwd]);
    let paid: Promise<unknown> | undefined;
    const pay = (output: string) => {
      const token = /\/invoice\/(inv_\w+)\W/.exec(output)?.[1];
      if (token === undefined) return;
      paid ??= call("POST", `${local.siteUrl}/invoice/${token}/pay`, local.apiKey);
    };
    const typed = [];
    for (const command of [
      "berth init",
      "berth deploy",
      "berth logs",
      "berth env set GREETING=hello",
      "berth sites diagnose",
    ])
      typed.push({ command, output: await typedInTerminal(command, { cwd, env, onOutput: pay }) });
    await paid;
    await typedInTerminal("berth sites delete hello-docker --yes", { cwd, env });
    return terminalPage(typed, fontCss());
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

function fontCss(): string {
  const file = "@fontsource-variable/jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2";
  const font = readFileSync(join(projectRoot, "node_modules", file)).toString("base64");
  return `@font-face { font-family: "JetBrains Mono Variable"; font-weight: 100 800;
    src: url("data:font/woff2;base64,${font}") format("woff2"); }`;
}
