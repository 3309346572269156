import { beforeAll, expect, it } from "vitest";
import type { SiteRequest } from "../../protocol/api/requests.ts";
import { operations } from "../../protocol/api/operations.ts";
import { pagesOfOperator } from "./pages.ts";
import { account, createSite, operator, readyAgent, runningSite } from "./service.ts";

let pages: Awaited<ReturnType<typeof pagesOfOperator>>;
beforeAll(async () => {
  pages = await pagesOfOperator();
});

const minute = (ago: number, memoryMb: number) => ({
  at: new Date(Date.now() - ago * 60_000).toISOString(),
  cpuMilli: 250,
  memoryMb,
  networkInBytes: 0,
  networkOutBytes: 1_500_000,
  diskMb: null,
});

/** Answers the page's two questions. */
async function answerBoth(on: Awaited<ReturnType<typeof readyAgent>>, metrics: object): Promise<void> {
  for (let asked = 0; asked < 2; asked++) {
    const { requestId, question } = await on.next("ask");
    const answer = question.kind === "events" ? { kind: "events", events: [] } : metrics;
    on.send({ type: "answer", requestId, answer, last: true });
  }
}

it("the metrics and requests of a site are its owner's alone", async () => {
  const { siteId } = await createSite(await account());
  for (const tab of ["metrics", "requests"]) {
    expect((await pages.show(`/sites/${siteId}/${tab}`)).status).toBe(403);
    expect((await pages.show(`/sites/site_unknown/${tab}`)).status).toBe(404);
  }
});

it("what a site used is drawn up to the plan's limit, with a gap where it did not run, and told in words and as a table", async () => {
  const on = await readyAgent();
  const { siteId } = await runningSite(await operator(), on);
  const shown = pages.show(`/sites/${siteId}/metrics`);
  const samples = [minute(30.5, 128), minute(10.5, 64), minute(9.5, 192)];
  await answerBoth(on, { kind: "metrics", samples });
  const { text } = await shown;
  expect(text).toContain('aria-label="Memory in the last hour: 192 MB, maximum 192, limit 256"');
  expect(text).toContain('aria-label="Network in the last hour: 1.4 MB per minute, maximum 1.4"');
  expect(text).not.toContain("Disk");
  // Half, a quarter and three quarters of the 256 MB of the plan.
  expect(text).toMatch(/d="M\d+ 30\.0h1M\d+ 44\.5h1L\d+ 15\.5"/);
  expect(text).toContain("As a table");
  expect(text).toMatch(/data-markers="\[\{&quot;at&quot;:[\d.]+,&quot;label&quot;:&quot;#1&quot;\}\]"/);
  on.close();
});

it("a host that does not answer is said on the page, and a range that is not there is the default", async () => {
  const on = await readyAgent();
  const { siteId } = await runningSite(await operator(), on);
  const shown = pages.show(`/sites/${siteId}/metrics?range=constructor`);
  await answerBoth(on, { kind: "refused", error: "The <host> is busy." });
  const { status, text } = await shown;
  expect(status).toBe(200);
  expect(text).toContain("The &lt;host&gt; is busy.");
  expect(text).toMatch(/aria-current="true">1 hour/);
  on.close();
});

it("a week is asked by the quarter of an hour, replicas have lines of their own, and restarts are marked", async () => {
  const on = await readyAgent();
  const { siteId } = await runningSite(await operator(), on);
  const shown = pages.show(`/sites/${siteId}/metrics?range=7d`);
  const replicas = [1, 2].map((replica) => ({ replica, cpuMilli: 125 * replica, memoryMb: 96 }));
  const at = new Date(Date.now() - 86_400_000).toISOString();
  for (let asked = 0; asked < 2; asked++) {
    const { requestId, question } = await on.next("ask");
    if (question.kind === "metrics") expect(question).toMatchObject({ window: "7d" });
    const answer =
      question.kind === "metrics"
        ? { kind: "metrics", samples: [{ ...minute(1440, 192), replicas }], intervalSeconds: 900 }
        : {
            kind: "events",
            events: [
              { at, kind: "restart", detail: "" },
              { at, kind: "restart", detail: "" },
              { at, kind: "healthy", detail: "" },
            ],
          };
    on.send({ type: "answer", requestId, answer, last: true });
  }
  const { text } = await shown;
  expect(text).toContain(
    'aria-label="Processor in the last 7 days: All 0.25 cores, maximum 0.25; Replica 1 0.13 cores, maximum 0.13; Replica 2 0.25 cores, maximum 0.25, limit 0.50"',
  );
  // 1.5 MB in a quarter of an hour.
  expect(text).toContain('aria-label="Network in the last 7 days: 0.1 MB per minute, maximum 0.1"');
  expect(text.match(/&quot;label&quot;:&quot;restart&quot;/g)).toHaveLength(1);
  expect(text).toContain("Dotted lines: restart, version #1.");
  on.close();
});

it("requests are counted, drawn and listed, filtered as asked, and nothing of them is HTML", async () => {
  const on = await readyAgent();
  const { siteId } = await runningSite(await operator(), on);
  const shown = pages.show(`/sites/${siteId}/requests?window=1h&status=5xx&path=/api`);
  const request = {
    ...(operations.getSiteRequests.examples.answer.data[0] as SiteRequest),
    path: "/api/<script>",
    status: 503,
  };
  const stats = {
    ...operations.getSiteRequestStats.examples.answer,
    from: new Date(Date.now() - 3_600_000).toISOString(),
    to: new Date().toISOString(),
    series: [],
  };
  for (let asked = 0; asked < 2; asked++) {
    const { requestId, question } = await on.next("ask");
    if (question.kind === "requests")
      expect(question).toMatchObject({ filters: { status: "5xx", path: "/api" }, limit: 51 });
    const answer =
      question.kind === "requests"
        ? { kind: "requests", requests: [request] }
        : { kind: "requestStats", stats };
    on.send({ type: "answer", requestId, answer, last: true });
  }
  const { text } = await shown;
  expect(text).toContain("/api/&lt;script&gt;");
  expect(text).not.toContain("/api/<script>");
  expect(text).toContain("95 % within");
  expect(text).toContain('value="5xx"');
  const wrong = pages.show(`/sites/${siteId}/requests?status=<b>`);
  const { requestId } = await on.next("ask");
  on.send({ type: "answer", requestId, answer: { kind: "refused", error: "Busy." }, last: true });
  const { status, text: told } = await wrong;
  expect([status, told.includes("This filter is not valid")]).toEqual([200, true]);
  expect(told).toContain('value="&lt;b&gt;"');
  on.close();
});
