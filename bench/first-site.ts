import { launchBrowser } from "../test/e2e/browser.ts";
import { orderAndWatch, signUp } from "../test/e2e/newcomer.ts";
import { local, plainServer, Repository } from "../test/e2e/service.ts";

/** How long somebody new waits from the first page until a site is online, in Chromium: typing and reading take no time here. */
const goalSeconds = 300;

const browser = await launchBrowser();
const context = await browser.newContext();
const page = await context.newPage();
let last = performance.now();
let wholeSeconds = 0;
const step = (done: string): void => {
  const seconds = (performance.now() - last) / 1000;
  wholeSeconds += seconds;
  console.log(`${seconds.toFixed(1)} s  ${done}`);
  last = performance.now();
};
const tell = (what: string): void => {
  console.log(`${wholeSeconds.toFixed(1)} s of ${goalSeconds} in all: ${what}`);
  wholeSeconds = 0;
  last = performance.now();
};
await signUp(
  page,
  { name: "New", email: `new-${process.pid}@example.com`, password: "a long password" },
  step,
);
await page.click('main a:has-text("Try the sample")');
await orderAndWatch(page, step);
tell("from the first page to the sample online");
const { address } = new Repository(plainServer("mine"));
last = performance.now();
await page.goto(`${local.siteUrl}/sites/new`);
await page.fill("main [name=githubUrl]", address);
await orderAndWatch(page, step);
tell("from the form to a repository of one's own online");
await browser.close();
