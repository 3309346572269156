import { launchBrowser, signedIn } from "../test/e2e/browser.ts";
import { api, local } from "../test/e2e/service.ts";
import { dashboardPages } from "../test/support/dashboard-pages.ts";

/** When the pages of the dashboard are first painted, in Chromium beside the service, with nothing cached. */
const loads = Number(process.env["BENCH_LOADS"] ?? 5);
const goalMs = 300;

const site = local.sampleSite.id;
const { data } = (await api<{ data: { id: string }[] }>("GET", `/sites/${site}/deployments`)).body;
const account = (await api<{ id: string }>("GET", "/account")).body.id;
const shown = { site, deployment: data[0]?.id ?? "", account, database: "", command: "", invoice: "" };
const paths = Object.entries(dashboardPages)
  // The sample has none of these.
  .filter(([path]) => !/databases\/:|:command|\/refund/.test(path))
  .map(([, at]) => at(shown));

const painted = `new Promise((told) => new PerformanceObserver((list) => {
  for (const { name, startTime } of list.getEntries()) if (name === "first-contentful-paint") told(startTime);
}).observe({ type: "paint", buffered: true }))`;

const browser = await launchBrowser();
const { context } = await signedIn(browser);
const storageState = await context.storageState();
const paints: { path: string; ms: number }[] = [];
for (const path of paths) {
  const times: number[] = [];
  for (let load = 0; load < loads; load++) {
    const fresh = await browser.newContext({ storageState });
    const page = await fresh.newPage();
    await page.goto(local.siteUrl + path);
    times.push(await page.evaluate<number>(painted));
    await fresh.close();
  }
  paints.push({ path, ms: Math.round(times.toSorted((a, b) => a - b)[Math.floor(loads / 2)] ?? 0) });
}
await browser.close();
paints.sort((a, b) => a.ms - b.ms);
const middle = paints[Math.floor(paints.length / 2)];
console.log(`First paint of ${paints.length} pages, medians of ${loads}: half within ${middle?.ms} ms`);
for (const { path, ms } of paints.toReversed().slice(0, 5)) console.log(`${ms} ms  ${path}`);
const late = paints.filter(({ ms }) => ms > goalMs).length;
console.log(`${late} later than ${goalMs} ms`);
