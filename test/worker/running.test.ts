import { runInDurableObject } from "cloudflare:test";
import { beforeAll, describe, expect, it } from "vitest";
import type { Answer } from "../../protocol/agent/running.ts";
import type { HostLink } from "../../worker/objects/host-link.ts";
import type { Id } from "../../protocol/ids.ts";
import { Browsed } from "../../protocol/api/files.ts";
import { operations } from "../../protocol/api/operations.ts";
import { RequestStats, type SiteRequest } from "../../protocol/api/requests.ts";
import type { Deployment } from "../../protocol/api/deployments.ts";
import {
  account,
  agent,
  api,
  bindings,
  call,
  createSite,
  finish,
  hello,
  readyAgent,
  runningSite,
  site,
  type Agent,
} from "./service.ts";

let key: string;
let host: Awaited<ReturnType<typeof readyAgent>>;
let siteId: string;
let deploymentId: string;

beforeAll(async () => {
  key = await account();
  host = await readyAgent();
  ({ siteId } = await runningSite(key, host));
  deploymentId = (await site(key, siteId)).currentDeployment?.id ?? "";
});

const line = (second: number, text: string) => ({
  at: `2026-01-01T00:00:0${second}.000000001Z`,
  stream: "stdout" as const,
  text,
});
const logs = (...lines: ReturnType<typeof line>[]): Answer => ({ kind: "logs", lines });

/** The next question, and the way to answer it. */
async function asked(on: Agent) {
  const { requestId, question } = await on.next("ask");
  return {
    requestId,
    question,
    answer: (answer: Answer, last = true) => on.send({ type: "answer", requestId, answer, last }),
  };
}

async function follow(query = "", headers: Record<string, string> = {}) {
  const response = await call(`/api/v1/sites/${siteId}/logs?follow=1${query}`, {
    headers: { Authorization: `Bearer ${key}`, ...headers },
  });
  if (!response.body) throw new Error("no body");
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  return {
    response,
    /** All that came, once it holds this. */
    async until(wanted: string): Promise<string> {
      while (!text.includes(wanted)) {
        const { done, value } = await reader.read();
        if (done) throw new Error(`ended with ${text}`);
        text += value;
      }
      return text;
    },
    async rest(): Promise<string> {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return text;
        text += value;
      }
    },
    cancel: () => reader.cancel(),
  };
}

describe("a running site's log", () => {
  it("is asked of its host, and comes in one piece whatever the number of frames", async () => {
    const reading = api<{ data: object[] }>(
      key,
      "GET",
      `/sites/${siteId}/logs?tail=2&since=2026-01-01T00:00:00Z`,
    );
    const { question, answer } = await asked(host);
    expect(question).toEqual({
      kind: "logs",
      siteId,
      tail: 2,
      after: "2026-01-01T00:00:00Z",
      follow: false,
      masks: [],
    });
    answer(logs(line(1, "one")), false);
    answer(logs(line(2, "two")));
    const { status, body } = await reading;
    expect([status, body.data]).toEqual([
      200,
      [
        { seq: 1_767_225_601_000_000, ...line(1, "one") },
        { seq: 1_767_225_602_000_000, ...line(2, "two") },
      ],
    ]);
  });

  it("is followed line by line, with times and the host as ids, until the reader goes", async () => {
    const stream = await follow("&tail=5");
    const { question, answer, requestId } = await asked(host);
    expect(question).toMatchObject({ tail: 5, after: null, follow: true });
    expect(stream.response.headers.get("Content-Type")).toBe("text/event-stream");
    answer(logs(line(1, "one"), line(2, "two")), false);
    const text = await stream.until("two");
    expect(text).toContain(`id: ${line(1, "").at}@${host.hostId}\nevent: line\ndata: {`);
    // Of one container after a later one of another.
    const place = `${line(2, "").at};0123456789ab-1000000000`;
    const late = { ...line(1, "late"), place };
    answer(logs(late), false);
    const last = (await stream.until("late")).slice(text.length);
    expect(last).toContain(`id: ${place}@${host.hostId}\nevent: line\ndata: {`);
    expect(last.split("data: ")[1]).not.toContain("place");
    await stream.cancel();
    // The next line finds the reader gone, if nothing else did.
    answer(logs(line(3, "nobody")), false);
    expect((await host.next("endAsk")).requestId).toBe(requestId);
  });

  it("acknowledges to the host what its reader has taken, and not before, and says what was left out", async () => {
    const stream = await follow("&tail=5");
    const { question, requestId } = await asked(host);
    expect(question).toMatchObject({ window: 2 });
    const send = (...lines: (ReturnType<typeof line> & { leftOut?: number })[]) =>
      host.send({ type: "answer", requestId, answer: logs(...lines), last: false, ack: true });
    send(line(1, "one"), { ...line(3, "2 lines left out"), leftOut: 2 });
    const text = await stream.until("left out");
    expect(text).toMatch(/event: line\ndata: .*"stream":"system","text":"2 lines left out","leftOut":2}/);
    expect((await host.next("answerAck")).requestId).toBe(requestId);
    await stream.cancel();
    send(line(4, "nobody"));
    await host.next("endAsk");
  });

  it("is asked for with the secrets a build may have left in the image, also those of before", async () => {
    const own = await account();
    const on = await readyAgent();
    const { siteId: id } = await runningSite(own, on, { gitToken: "git-token-1" });
    const set = (value: string) =>
      api(own, "PATCH", `/sites/${id}`, {
        envVariables: [
          { key: "NPM_TOKEN", value, scope: "build", encrypted: true },
          { key: "PLAIN", value: "plain-1", scope: "build" },
          { key: "DATABASE", value: "runtime-1", scope: "runtime", encrypted: true },
        ],
      });
    await set("build-1");
    await set("build-2");
    const reading = api(own, "GET", `/sites/${id}/logs`);
    const { question, answer } = await asked(on);
    answer(logs());
    await reading;
    expect("masks" in question && question.masks.toSorted()).toEqual(["build-1", "build-2", "git-token-1"]);
    const current = (await site(own, id)).currentDeployment?.id;
    on.send({ type: "crashed", siteId: id, deploymentId: current, error: "Its last lines: no build-2 here" });
    await on.next("crashAck");
    expect((await site(own, id)).latestDeployment?.error).toBe("Its last lines: no ••• here");
    on.close();
  });

  it("goes on with all of its host's log after a move, as the new host's was written beside the other's", async () => {
    const stream = await follow("", { "Last-Event-ID": `${line(4, "").at};0123456789ab-17@host_1other` });
    const { question, answer } = await asked(host);
    expect(question).toMatchObject({ after: "1970-01-01T00:00:00.000Z" });
    answer({ kind: "refused", error: "Over." });
    await stream.rest();
  });

  it.each([
    ["", line(4, "").at],
    ["", `${line(4, "").at};0123456789ab-17`],
    ["this host's", `${line(4, "").at};0123456789ab-17`],
  ])("goes on after Last-Event-ID, which wins over since: %s %s", async (whose, at) => {
    const id = whose === "" ? at : `${at}@${host.hostId}`;
    const stream = await follow("&since=2026-01-01T00:00:00Z", { "Last-Event-ID": id });
    const { question, answer } = await asked(host);
    expect(question).toMatchObject({ after: at });
    answer({ kind: "refused", error: "Over." });
    expect(await stream.rest()).toBe(": following\n\n");
  });

  it("has at most twenty followers a site; the next is told why", async () => {
    const streams = [];
    for (let i = 0; i < 20; i++) streams.push(await follow());
    const { status, body } = await api(key, "GET", `/sites/${siteId}/logs?follow=1`);
    expect([status, body["reason"]]).toEqual([409, expect.stringContaining("20 readers")]);
    for (const stream of streams) await stream.cancel();
    for (let i = 0; i < 20; i++) {
      const { answer } = await asked(host);
      answer(logs(line(1, "gone")), false);
      await host.next("endAsk");
    }
  });

  it("has at most sixty followers an account on one host, and room for others beside them", async () => {
    const link = bindings.HOST_LINK.get(bindings.HOST_LINK.idFromName(host.hostId));
    const refusals = await runInDurableObject(link, async (instance: HostLink) => {
      const idOf = (site: number): Id<"site"> => `site_${String(site).padStart(27, "0")}`;
      const follow = async (site: number, accountId: Id<"account">) => {
        const question = { kind: "logs", siteId: idOf(site), tail: 1, after: null, follow: true } as const;
        const reader = { accountId, credential: "key_1" } as const;
        const followed = await instance.follow({ ...question, masks: [] }, reader);
        return "kind" in followed ? followed.error : null;
      };
      const answers = [];
      for (let site = 0; site < 80; site++) answers.push(await follow(site % 8, "acc_many"));
      answers.push(await follow(9, "acc_other"));
      for (let site = 0; site < 10; site++) await instance.letGo(idOf(site));
      return answers;
    });
    expect(refusals.map((refusal) => refusal === null)).toEqual([
      ...Array<boolean>(60).fill(true),
      ...Array<boolean>(20).fill(false),
      true,
    ]);
    expect(refusals[60]).toMatch(/^60 readers already follow logs of your account/);
    for (let count = 0; count < 61; count++) {
      await host.next("ask");
      await host.next("endAsk");
    }
  });

  it("is no longer sent to a reader who takes nothing, before half a mebibyte and a frame wait for them", async () => {
    const link = bindings.HOST_LINK.get(bindings.HOST_LINK.idFromName(host.hostId));
    const id = siteId as Id<"site">;
    await runInDurableObject(link, async (instance: HostLink) => {
      const question = { kind: "logs", siteId: id, tail: 1, after: null, follow: true } as const;
      await instance.follow({ ...question, masks: [] }, { accountId: "acc_1", credential: "key_1" });
    });
    const { answer, requestId } = await asked(host);
    const frame = Array.from({ length: 8 }, (_, index) => line(index, "x".repeat(8000)));
    for (let sent = 0; sent < 12; sent++) answer(logs(...frame), false);
    expect((await host.next("endAsk")).requestId).toBe(requestId);
  });

  it("is empty for a site that never ran, and refuses to follow what is not there", async () => {
    const { siteId: unpaid } = await createSite(key);
    for (const what of ["logs", "metrics", "events"])
      expect(await api(key, "GET", `/sites/${unpaid}/${what}`)).toMatchObject({
        status: 200,
        body: { data: [] },
      });
    expect((await api(key, "GET", `/sites/${unpaid}/logs?follow=1`)).status).toBe(409);
  });

  it("is its owner's", async () => {
    const stranger = await account();
    for (const path of ["logs", "logs?follow=1", "metrics", "events"])
      expect((await api(stranger, "GET", `/sites/${siteId}/${path}`)).status).toBe(403);
  });
});

it("its log is searched by its host, with the secrets to mask and the times as given", async () => {
  const reading = api(key, "GET", `/sites/${siteId}/logs/search?text=Disk&from=2026-01-01T00:00:00Z&limit=2`);
  const { question, answer } = await asked(host);
  expect(question).toEqual({
    kind: "searchLog",
    siteId,
    text: "Disk",
    after: "2026-01-01T00:00:00Z",
    before: null,
    limit: 2,
    masks: [],
    timeoutMs: expect.any(Number) as number,
  });
  answer({ kind: "searchLog", lines: [line(1, "no disk")], complete: true });
  const found = { seq: 1_767_225_601_000_000, ...line(1, "no disk") };
  expect((await reading).body).toEqual({ data: [found], complete: true });
});

it("its files are asked of its host, and a refusal says why", async () => {
  const reading = api(key, "GET", `/sites/${siteId}/files?path=/data/a&volume=data`);
  const { question, answer } = await asked(host);
  expect(question).toEqual({ kind: "files", siteId, path: "/data/a", volume: "data", masks: [] });
  const found = Browsed.parse(operations.browseFiles.examples.answer);
  answer({ kind: "files", found });
  expect(await reading).toMatchObject({ status: 200, body: found });
  const refused = api(key, "GET", `/sites/${siteId}/files`);
  const second = await asked(host);
  expect(second.question).toMatchObject({ path: "/", volume: null });
  second.answer({ kind: "refused", error: "There is no such file or folder.", isMissing: true });
  expect(await refused).toMatchObject({ status: 404, body: { reason: "There is no such file or folder." } });
});

it("metrics and events are what the host kept", async () => {
  const sample = {
    at: new Date(Date.now() - 90_000).toISOString(),
    cpuMilli: 1.5,
    memoryMb: 20,
    networkInBytes: 1,
    networkOutBytes: 2,
    diskMb: null,
  };
  const metrics = api(key, "GET", `/sites/${siteId}/metrics`);
  (await asked(host)).answer({ kind: "metrics", samples: [sample] });
  expect((await metrics).body).toEqual({ data: [sample], intervalSeconds: 60 });
  const lastMinute = api(key, "GET", `/sites/${siteId}/metrics?minutes=1`);
  const now = { ...sample, at: new Date().toISOString() };
  (await asked(host)).answer({ kind: "metrics", samples: [sample, now] });
  expect((await lastMinute).body).toEqual({ data: [now], intervalSeconds: 60 });
  const week = api(key, "GET", `/sites/${siteId}/metrics?window=7d`);
  const asking = await asked(host);
  expect(asking.question).toMatchObject({ kind: "metrics", window: "7d" });
  asking.answer({ kind: "metrics", samples: [sample], intervalSeconds: 900 });
  expect((await week).body).toEqual({ data: [sample], intervalSeconds: 900 });
  const event = { at: sample.at, kind: "oom" as const, detail: "Too much." };
  const events = api(key, "GET", `/sites/${siteId}/events`);
  (await asked(host)).answer({ kind: "events", events: [event] });
  expect((await events).body).toEqual({ data: [event] });
  const later = api(key, "GET", `/sites/${siteId}/events?since=${now.at}`);
  (await asked(host)).answer({ kind: "events", events: [event, { ...event, at: now.at }] });
  expect((await later).body).toEqual({ data: [{ ...event, at: now.at }] });
  for (const wrong of ["metrics?minutes=0", "metrics?minutes=1441", "events?since=yesterday"])
    expect((await api(key, "GET", `/sites/${siteId}/${wrong}`)).status).toBe(400);
});

describe("a site's requests", () => {
  const request = operations.getSiteRequests.examples.answer.data[0] as SiteRequest;

  it("are asked of its host with what narrows them, page by page", async () => {
    const reading = api(
      key,
      "GET",
      `/sites/${siteId}/requests?status=5xx&path=/a&method=get&address=203.0.113.7&from=2026-01-01T00:00:00Z&limit=2&cursor=9`,
    );
    const { question, answer } = await asked(host);
    expect(question).toEqual({
      kind: "requests",
      siteId,
      filters: {
        status: "5xx",
        path: "/a",
        method: "get",
        address: "203.0.113.7",
        from: "2026-01-01T00:00:00Z",
      },
      limit: 3,
      place: 9,
      follow: false,
    });
    const three = ["8", "7", "5"].map((id) => ({ ...request, id }));
    answer({ kind: "requests", requests: three });
    expect((await reading).body).toEqual({ data: three.slice(0, 2), nextCursor: "7" });
  });

  it("are not asked for with what narrows nothing", async () => {
    const own = await account();
    for (const query of [
      "status=6xx",
      "status=abc",
      "path=",
      "method=G%20T",
      "address=nowhere",
      "from=today",
      "limit=101",
      "cursor=-1",
      "window=1h",
    ])
      expect((await api(own, "GET", `/sites/${siteId}/requests?${query}`)).status, query).toBe(400);
  });

  it("are followed live, and on after the last one that was received of this host", async () => {
    for (const [last, place] of [
      [`17@${host.hostId}`, 17],
      ["17@host_1other", null],
      ["2026-01-01T00:00:00Z", null],
    ] as const) {
      const response = await call(`/api/v1/sites/${siteId}/requests?follow=1&status=404`, {
        headers: { Authorization: `Bearer ${key}`, "Last-Event-ID": last },
      });
      const { question, answer } = await asked(host);
      expect(question).toMatchObject({ kind: "requests", follow: true, place, filters: { status: "404" } });
      answer({ kind: "requests", requests: [request] }, false);
      answer({ kind: "refused", error: "Over." });
      const text = await response.text();
      expect(response.headers.get("Content-Type")).toBe("text/event-stream");
      expect(text).toContain(
        `id: ${request.id}@${host.hostId}\nevent: request\ndata: ${JSON.stringify(request)}\n\n`,
      );
    }
  });

  it("are counted by its host, for a window", async () => {
    const reading = api(key, "GET", `/sites/${siteId}/request-stats?window=7d`);
    const { question, answer } = await asked(host);
    expect(question).toEqual({ kind: "requestStats", siteId, window: "7d" });
    const stats = RequestStats.parse(operations.getSiteRequestStats.examples.answer);
    answer({ kind: "requestStats", stats });
    expect((await reading).body).toEqual(stats);
    expect((await api(key, "GET", `/sites/${siteId}/request-stats?window=2y`)).status).toBe(400);
  });

  it("are none of a site that never ran, and its owner's only", async () => {
    const own = await account();
    const { siteId: unpaid } = await createSite(own);
    expect((await api(own, "GET", `/sites/${unpaid}/requests`)).body).toEqual({ data: [], nextCursor: null });
    expect((await api(own, "GET", `/sites/${unpaid}/request-stats`)).body).toMatchObject({
      totals: { requests: 0 },
      series: [],
    });
    expect((await api(own, "GET", `/sites/${unpaid}/requests?follow=1`)).status).toBe(409);
    const stranger = await account();
    for (const path of ["requests", "requests?follow=1", "request-stats"])
      expect((await api(stranger, "GET", `/sites/${siteId}/${path}`)).status).toBe(403);
  });
});

describe("a host that goes", () => {
  it("ends what is read and what is followed, and is offline from then on", async () => {
    const own = await account();
    const going = await readyAgent();
    const { siteId: id } = await runningSite(own, going);
    const following = await call(`/api/v1/sites/${id}/logs?follow=1`, {
      headers: { Authorization: `Bearer ${own}` },
    });
    await asked(going);
    const reading = api(own, "GET", `/sites/${id}/logs`);
    await asked(going);
    going.close();
    expect(await following.text()).toBe(": following\n\n");
    const offline = { status: 409, body: { reason: expect.stringContaining("offline") } };
    expect(await reading).toMatchObject(offline);
    for (const path of ["logs", "logs?follow=1", "metrics", "events"])
      expect(await api(own, "GET", `/sites/${id}/${path}`)).toMatchObject(offline);
  });

  it("is told to stop when it answers what nobody asked any more", async () => {
    host.send({ type: "answer", requestId: "forgotten", answer: logs(line(1, "x")), last: false });
    // Lines for a reader before it, who took nothing, may have come too late as well.
    while ((await host.next("endAsk")).requestId !== "forgotten");
  });
});

describe("a crash loop", () => {
  const error = "The app exited 5 times within a minute. Its last lines: no database";
  const report = async (on: Agent, crash: object) => {
    on.send({ type: "crashed", siteId, deploymentId, error, ...crash });
    await on.next("crashAck");
  };
  const deployment = async () => (await api<Deployment>(key, "GET", `/deployments/${deploymentId}`)).body;

  it("of another version, or said by another host, changes nothing and is acknowledged", async () => {
    await report(host, { deploymentId: deploymentId.replace(/.$/, (last) => (last === "0" ? "1" : "0")) });
    const other = await readyAgent(0);
    await report(other, {});
    expect((await site(key, siteId)).status).toBe("RUNNING");
    expect((await deployment()).error).toBeNull();
    other.close();
  });

  it("makes the site FAILED with the reason, once; start brings it back and the reason goes", async () => {
    await report(host, {});
    await report(host, { error: "Said again" });
    expect(await site(key, siteId)).toMatchObject({
      status: "FAILED",
      latestDeployment: { id: deploymentId, status: "LIVE", error },
    });
    expect((await api(key, "PATCH", `/sites/${siteId}`, { action: "start" })).status).toBe(202);
    const { job, attempt } = await host.next("job");
    await finish(host, job, attempt);
    expect(await site(key, siteId)).toMatchObject({ status: "RUNNING", latestDeployment: { error: null } });
  });

  it("while a deployment is under way leaves the status to its outcome", async () => {
    await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    const { job, attempt } = await host.next("job");
    await report(host, {});
    expect((await site(key, siteId)).status).toBe("DEPLOYING");
    host.send({
      type: "failed",
      jobId: job.id,
      attempt,
      error: "No.",
      cancelled: false,
      durations: null,
    });
    await host.next("ack");
    // Why nothing runs, beside why the newer one did not come to run.
    expect(await site(key, siteId)).toMatchObject({
      status: "FAILED",
      currentDeployment: { id: deploymentId, error },
      latestDeployment: { error: "No." },
    });
  });
});

it("a host that has not said hello is asked nothing", async () => {
  const own = await account();
  const first = await readyAgent();
  const { siteId: id } = await runningSite(own, first);
  const second = await agent(first.token);
  expect((await api(own, "GET", `/sites/${id}/logs`)).status).toBe(409);
  second.send(hello());
  await second.next("welcome");
  const reading = api(own, "GET", `/sites/${id}/logs`);
  (await asked(second)).answer(logs());
  expect((await reading).body).toEqual({ data: [] });
  second.close();
});
