import { Webhook } from "standardwebhooks";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Page } from "../../protocol/api/common.ts";
import type { Channel, ChannelCreated, Delivery } from "../../protocol/api/notifications.ts";
import type { Id } from "../../protocol/ids.ts";
import { contextOf } from "../../worker/compose.ts";
import { sendDueMails } from "../../worker/mails/send-due.ts";
import { sendDueNotifications } from "../../worker/services/notifications/send-due.ts";
import { takeNotices } from "../../worker/services/notifications/take-notices.ts";
import { recordCrash } from "../../worker/services/running/record-crash.ts";
import {
  account,
  api,
  bindings,
  createSite,
  fail,
  pay,
  readyAgent,
  run,
  runningSite,
  site,
  uniqueName,
} from "./service.ts";

type Got = { url: string; headers: Headers; body: string };
/** What receivers got, and what they answer. */
let received: Got[] = [];
let answers: (url: string) => Response | Promise<Response>;
/** What names resolve to. */
let addresses: Record<string, string[]>;

const resolved = (url: URL): Response => {
  const name = url.searchParams.get("name") ?? "";
  const type = url.searchParams.get("type") === "AAAA" ? 28 : 1;
  const found = (addresses[name] ?? ["93.184.215.14"]).filter((one) => one.includes(":") === (type === 28));
  return Response.json({ Status: 0, Answer: found.map((data) => ({ type, data })) });
};

beforeEach(() => {
  received = [];
  answers = () => new Response(null, { status: 204 });
  addresses = {};
  const outside = globalThis.fetch.bind(globalThis);
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    const url = new URL(request.url);
    if (url.pathname === "/dns-query" || url.hostname === "dns.google") return resolved(url);
    if (url.hostname === "127.0.0.1") return outside(request);
    received.push({ url: url.href, headers: request.headers, body: await request.text() });
    return answers(url.href);
  });
});
afterEach(() => vi.restoreAllMocks());

const at = (ms = 0) => {
  const ctx = contextOf(bindings, { type: "system" }, () => undefined);
  const now = () => new Date(Date.now() + ms);
  return { ...ctx, now };
};
/** What the clock does. */
const tick = async (ms = 0) => {
  await takeNotices(at(ms));
  await sendDueNotifications(at(ms));
};
const url = () => `https://${uniqueName("hooks")}.example.com/in`;

async function channel(key: string, input: object): Promise<ChannelCreated> {
  const { status, body } = await api<ChannelCreated>(key, "POST", "/notifications/channels", input);
  expect([status, body]).toEqual([201, expect.objectContaining({ enabled: true })]);
  return body;
}
const deliveriesOf = async (key: string, query = "") =>
  (await api<Page<Delivery>>(key, "GET", `/notifications/deliveries${query}`)).body.data;

/** A site of the account whose deployment has failed. */
async function failedSite(key: string) {
  const host = await readyAgent();
  const { siteId, invoiceToken } = await createSite(key, { name: uniqueName("shop") });
  await pay(invoiceToken);
  const { job, attempt } = await host.next("job");
  await fail(host, job, attempt, "Nothing listens on port 3000 <here> & now.");
  const { name, latestDeployment } = await site(key, siteId);
  return { siteId, name, deploymentId: latestDeployment?.id ?? "" };
}

describe("a failed deployment", () => {
  it("is told once, to the channels that want it, signed as Standard Webhooks says", async () => {
    const key = await account();
    const hook = await channel(key, { type: "webhook", url: url(), kinds: ["deploy_failed"] });
    await channel(key, { type: "webhook", url: url(), kinds: ["crash_loop"] });
    const { name, deploymentId } = await failedSite(key);
    await tick();
    await tick();
    expect(received.map((one) => one.url)).toEqual([hook.target]);
    const [{ headers, body } = { headers: new Headers(), body: "" }] = received;
    const verified = new Webhook(hook.secret ?? "").verify(body, Object.fromEntries(headers));
    const [delivery] = await deliveriesOf(key);
    expect(verified).toEqual({
      type: "deploy_failed",
      timestamp: delivery?.createdAt,
      data: {
        accountId: expect.stringMatching(/^acc_/) as string,
        resourceId: deploymentId,
        subject: `Deployment #1 of ${name} failed`,
        text: "Nothing listens on port 3000 <here> & now.",
        link: `http://127.0.0.1:8787/deployments/${deploymentId}`,
      },
    });
    expect(headers.get("webhook-id")).toBe(delivery?.id);
    expect(() => new Webhook(hook.secret ?? "").verify(`${body} `, Object.fromEntries(headers))).toThrow();
    expect(delivery).toMatchObject({
      status: "sent",
      attempts: 1,
      httpStatus: 204,
      error: null,
      channelId: hook.id,
    });
  });

  it("is told to nobody who did not ask: no channel, no row", async () => {
    const key = await account();
    await failedSite(key);
    const other = await account();
    const { id } = await channel(other, { type: "webhook", url: url(), kinds: ["deploy_failed"] });
    await api(other, "PATCH", `/notifications/channels/${id}`, { enabled: false });
    await failedSite(other);
    await tick();
    expect(received).toEqual([]);
    const { results } = await bindings.DB.prepare(
      "SELECT * FROM notices WHERE account_id IN (SELECT account_id FROM deployments) AND taken_at IS NULL",
    ).all();
    expect(results).toEqual([]);
  });

  it("reaches Slack in its format, with its markup escaped", async () => {
    const key = await account();
    await channel(key, {
      type: "slack",
      url: "https://hooks.slack.com/services/T/B/x",
      kinds: ["deploy_failed"],
    });
    const { name, deploymentId } = await failedSite(key);
    await tick();
    expect(received.map(({ body }) => JSON.parse(body) as unknown)).toEqual([
      {
        text: `*Deployment #1 of ${name} failed*\nNothing listens on port 3000 &lt;here&gt; &amp; now.\n<http://127.0.0.1:8787/deployments/${deploymentId}>`,
      },
    ]);
    expect(received[0]?.headers.get("webhook-signature")).toBeNull();
  });

  it("is mailed through the outbox, to the account's address", async () => {
    const key = await account();
    await channel(key, { type: "mail", kinds: ["deploy_failed"] });
    const { name } = await failedSite(key);
    await tick();
    expect((await deliveriesOf(key))[0]).toMatchObject({ status: "pending" });
    await sendDueMails(at());
    await tick();
    const mails = received.map(({ body }) => JSON.parse(body) as { subject: string; text: string });
    expect(mails).toEqual([
      expect.objectContaining({
        subject: `Deployment #1 of ${name} failed`,
        text: expect.stringContaining("you chose to be notified of failed deployments") as string,
      }),
    ]);
    expect((await deliveriesOf(key))[0]).toMatchObject({ status: "sent", subject: mails[0]?.subject });
  });
});

describe("a receiver", () => {
  const failing = async (answer: () => Response | Promise<Response>) => {
    const key = await account();
    const hook = await channel(key, { type: "webhook", url: url(), kinds: ["deploy_failed"] });
    await failedSite(key);
    answers = answer;
    return { key, hook };
  };

  it("that fails is asked again with the same id, less and less often, and at last no more", async () => {
    const { key } = await failing(() => new Response("down", { status: 503 }));
    const minute = 60_000;
    let ms = 0;
    for (const pause of [0, 1, 5, 30, 120, 300, 600, 1440]) {
      const before = received.length;
      if (pause > 0) await tick(ms + pause * minute - 10_000);
      expect(received.length).toBe(before);
      ms += pause * minute + 1000;
      await tick(ms);
      expect([pause, received.length]).toEqual([pause, before + 1]);
    }
    await tick(ms + 30 * 1440 * minute - 10 * 1440 * minute);
    expect(received).toHaveLength(8);
    expect(new Set(received.map(({ headers }) => headers.get("webhook-id"))).size).toBe(1);
    expect(new Set(received.map(({ headers }) => headers.get("webhook-timestamp"))).size).toBe(8);
    expect((await deliveriesOf(key, "?status=failed"))[0]).toMatchObject({
      attempts: 8,
      httpStatus: 503,
      error: "The receiver answered 503.",
      nextAttemptAt: null,
    });
  });

  it("that recovers receives what it missed", async () => {
    const { key } = await failing(() => Promise.reject(new TypeError("refused")));
    await tick();
    expect((await deliveriesOf(key))[0]).toMatchObject({
      status: "pending",
      attempts: 1,
      httpStatus: null,
      error: "The receiver cannot be reached.",
      nextAttemptAt: expect.any(String) as string,
    });
    answers = () => new Response(null, { status: 200 });
    await tick(61_000);
    expect((await deliveriesOf(key))[0]).toMatchObject({ status: "sent", attempts: 2, error: null });
  });

  it("that its owner turned off is asked no more, and the record keeps what it answered last", async () => {
    const { key, hook } = await failing(() => new Response("down", { status: 503 }));
    await tick();
    await api<Channel>(key, "PATCH", `/notifications/channels/${hook.id}`, { enabled: false });
    await tick(61_000);
    expect(received).toHaveLength(1);
    expect((await deliveriesOf(key))[0]).toMatchObject({
      status: "failed",
      httpStatus: 503,
      error: "The channel is disabled.",
      nextAttemptAt: null,
    });
  });

  it("that is gone disables its channel, and a redirect is not followed", async () => {
    const { key, hook } = await failing(() => new Response(null, { status: 410 }));
    await tick();
    const { body } = await api<Page<Channel>>(key, "GET", "/notifications/channels");
    expect(body.data[0]).toMatchObject({
      enabled: false,
      disabledReason: expect.stringContaining("410") as string,
    });
    const again = await api<Channel>(key, "PATCH", `/notifications/channels/${hook.id}`, { enabled: true });
    expect(again.body).toMatchObject({ enabled: true, disabledReason: null });
    answers = () => Response.redirect("https://169.254.169.254/latest", 307);
    const { body: tested } = await api<Delivery>(key, "POST", `/notifications/channels/${hook.id}/test`);
    expect(tested).toMatchObject({ status: "failed", httpStatus: 307 });
    expect(received.map((one) => one.url)).toEqual([hook.target, hook.target]);
  });

  it.each([
    [["10.0.0.1"]],
    [["93.184.215.14", "127.0.0.1"]],
    [["93.184.215.14", "fd00::1"]],
    [["::1"]],
    [["169.254.169.254"]],
    [[]],
  ])("whose name leads to %j is not asked", async (found) => {
    const key = await account();
    const target = url();
    addresses[new URL(target).hostname] = found;
    const { id } = await channel(key, { type: "slack", url: target, kinds: ["unhealthy"] });
    const { body } = await api<Delivery>(key, "POST", `/notifications/channels/${id}/test`);
    expect(body).toMatchObject({
      kind: "test",
      status: "failed",
      error: expect.stringMatching(/private address|no address/) as string,
    });
    expect(received).toEqual([]);
  });
});

describe("a channel", () => {
  it("is tested at once, and the answer says whether that worked", async () => {
    const key = await account();
    const hook = await channel(key, { type: "webhook", url: url(), kinds: ["unhealthy"], name: "Pager" });
    const { body } = await api<Delivery>(key, "POST", `/notifications/channels/${hook.id}/test`);
    expect(body).toMatchObject({ kind: "test", status: "sent", httpStatus: 204 });
    const mail = await channel(key, { type: "mail", kinds: ["unhealthy"] });
    expect((await api<Delivery>(key, "POST", `/notifications/channels/${mail.id}/test`)).body.status).toBe(
      "sent",
    );
    expect(received.map((one) => new URL(one.url).hostname)).toEqual([
      new URL(hook.target).hostname,
      "mail.test",
    ]);
    expect((await deliveriesOf(key, `?channelId=${hook.id}`)).map(({ kind }) => kind)).toEqual(["test"]);
    for (let count = 0; count < 8; count++) await api(key, "POST", `/notifications/channels/${hook.id}/test`);
    expect((await api(key, "POST", `/notifications/channels/${hook.id}/test`)).status).toBe(429);
  });

  it("shows its secret once, and an address that is a secret never", async () => {
    const key = await account();
    const hook = await channel(key, { type: "webhook", url: url(), kinds: ["unhealthy"] });
    await channel(key, {
      type: "slack",
      url: "https://hooks.slack.com/services/T/B/canary",
      kinds: ["unhealthy"],
    });
    expect(hook.secret).toMatch(/^whsec_[A-Za-z0-9+/]{32}$/);
    const lists = [
      await api(key, "GET", "/notifications/channels"),
      await api(key, "GET", "/activity"),
      { body: (await bindings.DB.prepare("SELECT * FROM notification_channels").all()).results },
    ];
    expect(JSON.stringify(lists)).not.toContain("canary");
    expect(JSON.stringify(lists)).not.toContain(hook.secret);
    expect(JSON.stringify(lists[0])).toContain('"target":"hooks.slack.com"');
  });

  it("is refused where nothing may be sent, without kinds, or beyond ten", async () => {
    const key = await account();
    const kinds = ["unhealthy"];
    for (const input of [
      { type: "webhook", url: "http://example.com/", kinds },
      { type: "webhook", url: "https://localhost/", kinds },
      { type: "webhook", url: "https://10.0.0.1/", kinds },
      { type: "slack", url: "https://example.com:22/", kinds },
      { type: "webhook", kinds },
      { type: "mail", url: "https://example.com/", kinds },
      { type: "mail", kinds: [] },
      { type: "mail", kinds: ["unhealthy", "unhealthy"] },
      { type: "mail", kinds: ["everything"] },
      { type: "sms", kinds },
    ])
      expect([input, (await api(key, "POST", "/notifications/channels", input)).status]).toEqual([
        input,
        400,
      ]);
    const made = [];
    for (let count = 0; count < 10; count++) made.push(await channel(key, { type: "mail", kinds }));
    expect((await api(key, "POST", "/notifications/channels", { type: "mail", kinds })).status).toBe(409);
    const path = `/notifications/channels/${made[0]?.id}`;
    expect((await api(key, "PATCH", path, { url: "https://example.com/" })).status).toBe(400);
    expect((await api(await account(), "DELETE", path)).status).toBe(403);
    expect((await api(key, "DELETE", path)).body).toEqual({ id: made[0]?.id, deleted: true });
    expect((await api(key, "DELETE", path)).status).toBe(404);
  });

  it("that is deleted takes what waits with it", async () => {
    const key = await account();
    const { id } = await channel(key, { type: "webhook", url: url(), kinds: ["deploy_failed"] });
    await failedSite(key);
    await takeNotices(at());
    expect(await deliveriesOf(key)).toHaveLength(1);
    await api(key, "DELETE", `/notifications/channels/${id}`);
    await tick();
    expect(received).toEqual([]);
    expect(await deliveriesOf(key)).toEqual([]);
  });
});

it("a site that crashes again and again is told once an hour", async () => {
  const [key, host] = [await account(), await readyAgent()];
  await channel(key, { type: "webhook", url: url(), kinds: ["crash_loop"] });
  const { siteId } = await runningSite(key, host);
  const current = (await site(key, siteId)).currentDeployment?.id as Id<"deployment">;
  for (let count = 0; count < 5; count++) {
    await run("UPDATE sites SET serving = 1, status = 'RUNNING' WHERE id = ?", siteId);
    await recordCrash(at(), host.hostId as Id<"host">, {
      siteId: siteId as Id<"site">,
      deploymentId: current,
      error: "It exited with code 1, five times in a minute.",
    });
    await tick();
  }
  const { results } = await bindings.DB.prepare("SELECT occasion FROM notices WHERE resource_id = ?")
    .bind(siteId)
    .all<{ occasion: string }>();
  const hours = results.map(({ occasion }) => Number(occasion.split(":")[2]));
  // The hour may have ended in between.
  expect(hours[0]).toBeGreaterThanOrEqual(Math.floor(Date.now() / 3_600_000) - 1);
  expect(received.length).toBe(hours.length);
  expect(received.length).toBeLessThanOrEqual(2);
  expect(JSON.parse(received[0]?.body ?? "{}")).toMatchObject({
    type: "crash_loop",
    data: { resourceId: siteId, text: "It exited with code 1, five times in a minute." },
  });
});

it("a site that exited with its work done is no crash; one that failed and is not started again has exited", async () => {
  const [key, host] = [await account(), await readyAgent()];
  await channel(key, { type: "webhook", url: url(), kinds: ["crash_loop"] });
  const { siteId } = await runningSite(key, host);
  const { name, currentDeployment: current } = await site(key, siteId);
  const exits = async (code: number, policy: string) => {
    const error = `The app exited with code ${code}, and its restart policy (${policy}) does not start it again. Start or deploy it to run it again.`;
    await run("UPDATE sites SET serving = 1, status = 'RUNNING' WHERE id = ?", siteId);
    host.send({ type: "crashed", siteId, deploymentId: current?.id, error });
    await host.next("crashAck");
    await tick();
    return error;
  };
  await exits(0, "on-failure");
  expect(received).toEqual([]);
  const { status, currentDeployment } = await site(key, siteId);
  expect([status, currentDeployment?.error]).toEqual(["FAILED", expect.stringContaining("code 0")]);
  const text = await exits(3, "never");
  expect(received.map(({ body }) => JSON.parse(body) as unknown)).toMatchObject([
    { type: "crash_loop", data: { subject: `${name} has exited`, text } },
  ]);
  const { body } = await api<Page<{ operation: string }>>(key, "GET", "/activity");
  expect(body.data.slice(0, 2).map(({ operation }) => operation)).toEqual([
    "reportSiteCrash",
    "reportSiteExit",
  ]);
});

it("a failing health check is told once an hour, if the host that serves the site says so", async () => {
  const [key, host] = [await account(), await readyAgent()];
  await channel(key, { type: "webhook", url: url(), kinds: ["unhealthy"] });
  const { siteId } = await runningSite(key, host);
  const other = await readyAgent();
  const detail = "The health check /health of version 1 answered 500, 3 times in a row.";
  other.send({ type: "unhealthy", siteId, detail: "of another host" });
  host.send({ type: "unhealthy", siteId, detail });
  host.send({ type: "unhealthy", siteId, detail });
  await expect.poll(async () => (await tick(), received.length)).toBeGreaterThan(0);
  expect(JSON.parse(received[0]?.body ?? "{}")).toMatchObject({
    type: "unhealthy",
    data: { resourceId: siteId, text: detail },
  });
  // The hour may have ended in between.
  expect(received.length).toBeLessThanOrEqual(2);
});

it("a health check that fails while the host's agent connects is told once for as long as it fails", async () => {
  const [key, host] = [await account(), await readyAgent()];
  await channel(key, { type: "webhook", url: url(), kinds: ["unhealthy"] });
  const { siteId } = await runningSite(key, host);
  const detail = "The health check /health of version 1 answers 500, 3 times in a row.";
  const told = async () => (
    await tick(),
    received.map(({ body }) => (JSON.parse(body) as { data: { text: string } }).data.text)
  );
  host.send({ type: "failingChecks", sites: [{ siteId, detail }] });
  await expect.poll(told).toEqual([detail]);
  await run("UPDATE notices SET occasion = occasion || ':an hour ago'");
  host.send({ type: "failingChecks", sites: [{ siteId, detail: "Again." }] });
  const stored = () =>
    bindings.DB.prepare("SELECT failing_checks AS now FROM hosts WHERE id = ?")
      .bind(host.hostId)
      .first<{ now: string }>();
  await expect.poll(async () => (await stored())?.now).toContain("Again.");
  expect(await told()).toEqual([detail]);
});

it("what runs out of memory or fills its disk is told once a day, if the host that has it says so", async () => {
  const [key, host] = [await account(), await readyAgent()];
  await channel(key, { type: "webhook", url: url(), kinds: ["limit_near"] });
  const { siteId } = await runningSite(key, host);
  const { body: made } = await api<{ databaseId: string }>(key, "POST", "/databases", {
    name: uniqueName("data"),
    type: "redis",
  });
  await run("UPDATE databases SET host_id = ? WHERE id = ?", host.hostId, made.databaseId);
  const other = await readyAgent();
  const near = (from: typeof host, resourceId: string, of: "memory" | "disk", detail: string) =>
    from.send({ type: "limitNear", resourceId, of, detail });
  near(other, siteId, "memory", "of another host");
  for (let count = 0; count < 2; count++) {
    near(host, siteId, "memory", "The app was killed.");
    near(host, siteId, "disk", "The site's disk is nearly full.");
    near(
      host,
      made.databaseId,
      "memory",
      "It used more memory than its pack has. Its last line: the pack is bad",
    );
  }
  await expect.poll(async () => (await tick(), received.length)).toBeGreaterThanOrEqual(3);
  const told = received.map(
    ({ body }) => (JSON.parse(body) as { data: Record<"resourceId" | "subject" | "text", string> }).data,
  );
  for (const [resourceId, subject, text] of [
    [siteId, /runs out of memory$/, "The app was killed."],
    [siteId, /is almost full$/, "The site's disk is nearly full."],
    [
      made.databaseId,
      /runs out of memory$/,
      "It used more memory than its plan has. Its last line: the pack is bad",
    ],
  ])
    expect(told).toContainEqual(
      expect.objectContaining({ resourceId, subject: expect.stringMatching(subject ?? "") as string, text }),
    );
  expect(told.map(({ text }) => text)).not.toContain("of another host");
  // The day may have ended in between.
  expect(told.length).toBeLessThanOrEqual(6);
});

it("the disk of a database, its backups, invoices and certificates are told from what is written of them", async () => {
  const key = await account();
  const kinds = ["limit_near", "backup_failed", "invoice_due", "certificate"];
  await channel(key, { type: "webhook", url: url(), kinds });
  await channel(key, { type: "mail", kinds });
  const { siteId } = await createSite(key);
  const { body: made } = await api<{ databaseId: string }>(key, "POST", "/databases", {
    name: uniqueName("data"),
    type: "redis",
  });
  const { body: own } = await api<{ id: string }>(key, "GET", "/account");
  await run(
    "INSERT INTO domains (id, site_id, name, challenge, created_at) VALUES (?, ?, 'certain.example', 'c', 0)",
    `dom_${siteId}`,
    siteId,
  );
  const problems = JSON.stringify([{ code: "certificate_failed", message: "The authority refused it." }]);
  const mail = (id: string) =>
    run(
      "INSERT INTO mails (id, account_id, subject, text, created_at, try_at) VALUES (?, ?, 'Subject', 'Text', ?, 0)",
      id,
      own.id,
      Date.now(),
    );
  for (let count = 0; count < 2; count++) {
    await run("UPDATE databases SET disk_mb = 100 WHERE id = ?", made.databaseId);
    await run("UPDATE databases SET disk_mb = 5000 WHERE id = ?", made.databaseId);
    await run("UPDATE domains SET problems = '[]' WHERE site_id = ?", siteId);
    await run("UPDATE domains SET problems = ? WHERE site_id = ?", problems, siteId);
  }
  await mail(`backups-failing:${made.databaseId}:1:0`);
  await mail(`ended:${siteId}:77`);
  await mail(`domain-lost:x:${siteId}`);
  await tick();
  const told = received.map(({ body }) => JSON.parse(body) as { type: string; data: object });
  expect(told.map(({ type }) => type).toSorted()).toEqual(kinds.toSorted());
  for (const [type, resourceId, text] of [
    ["limit_near", made.databaseId, expect.stringContaining("uses 4.9 GB of its plan's 5 GB")],
    ["certificate", `dom_${siteId}`, "The authority refused it."],
    ["backup_failed", made.databaseId, "Text"],
    ["invoice_due", siteId, "Text"],
  ])
    expect(told).toContainEqual({
      type,
      timestamp: expect.any(String) as string,
      data: expect.objectContaining({ resourceId, text }) as object,
    });
  // By mail only what is not mailed anyway.
  const mailed = (await deliveriesOf(key)).filter(({ status }) => status === "pending");
  expect(new Set(mailed.map(({ kind }) => kind))).toEqual(new Set(["limit_near", "certificate"]));
});

it("receivers of others that fail hold up nobody's first notification", async () => {
  await run("DELETE FROM deliveries");
  answers = () => new Response(null, { status: 500 });
  const due = async (key: string, count: number, createdAt: number) => {
    const { id } = await channel(key, { type: "webhook", url: url(), kinds: ["crash_loop"] });
    const { body } = await api<{ id: string }>(key, "GET", "/account");
    for (let number = 0; number < count; number++)
      await run(
        `INSERT INTO deliveries (id, account_id, channel_id, kind, occasion, subject, text, status, attempts, created_at, try_at)
         VALUES (?, ?, ?, 'crash_loop', ?, 'It crashes', 'It crashes.', 'pending', 0, ?, ?)`,
        at().newId("delivery"),
        body.id,
        id,
        `${number}`,
        createdAt,
        createdAt,
      );
  };
  for (let other = 0; other < 7; other++) await due(await account(), 6, 1);
  const key = await account();
  await due(key, 1, 2);
  await sendDueNotifications(at());
  expect(await deliveriesOf(key)).toMatchObject([{ attempts: 1 }]);
});

it("an account is sent at most sixty notifications an hour", async () => {
  const key = await account();
  await channel(key, { type: "mail", kinds: ["crash_loop"] });
  const { body } = await api<{ id: string }>(key, "GET", "/account");
  const { siteId } = await createSite(key);
  for (let count = 0; count < 70; count++)
    await run(
      "INSERT INTO notices (account_id, kind, occasion, resource_id, created_at) VALUES (?, 'crash_loop', ?, ?, ?)",
      body.id,
      `${count}`,
      siteId,
      Date.now(),
    );
  await takeNotices(at());
  const found = await bindings.DB.prepare("SELECT count(*) AS n FROM deliveries WHERE account_id = ?")
    .bind(body.id)
    .first<{ n: number }>();
  expect(found?.n).toBe(60);
});
