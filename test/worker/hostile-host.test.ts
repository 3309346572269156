import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { maxFrameBytes, unfitAnswer } from "../../protocol/agent/messages.ts";
import { operations } from "../../protocol/api/operations.ts";
import { hostRecord } from "./hosts-service.ts";
import { signedIn } from "./pages.ts";
import {
  createSite,
  deployResult,
  account,
  api,
  bindings,
  call,
  finish,
  hostIn,
  hello,
  operator,
  pay,
  ready,
  readyAgent,
  run,
  runningSite,
  site,
  uniqueName,
} from "./service.ts";

let key: string;
let host: Awaited<ReturnType<typeof readyAgent>>;
let siteId: string;

beforeEach(async () => {
  key = await account();
  host = await readyAgent();
  ({ siteId } = await runningSite(key, host));
  return () => host.close();
});

it("a host that sends frames as large as they may be is cut off before they fill the memory", async () => {
  const stranger = await readyAgent();
  const line = { at: new Date().toISOString(), stream: "stdout", text: "x".repeat(8000) };
  const lines = Array.from({ length: Math.floor(maxFrameBytes / 8200) }, () => line);
  const { currentDeployment } = await site(key, siteId);
  const jobId = `job_0${"0".repeat(26)}`;
  for (let count = 0; count < 300; count++)
    stranger.send({
      type: "log",
      jobId,
      attempt: 1,
      deploymentId: currentDeployment?.id,
      firstSeq: 1,
      lines,
    });
  expect((await stranger.closed).code).toBe(4002);
});

it("an answer without an end is not waited for, nor kept", async () => {
  const reading = api<{ reason: string }>(key, "GET", `/sites/${siteId}/logs`);
  const { requestId } = await host.next("ask");
  const line = { at: new Date().toISOString(), stream: "stdout", text: "x" };
  const answer = { kind: "logs", lines: Array.from({ length: 600 }, () => line) };
  for (let count = 0; count < 2; count++) host.send({ type: "answer", requestId, answer, last: false });
  expect(await host.next("endAsk")).toEqual({ type: "endAsk", requestId });
  expect((await reading).status).toBe(409);
});

it("an answer of ever more parts without a line is given up at once as well", async () => {
  const reading = api(key, "GET", `/sites/${siteId}/logs`);
  const { requestId } = await host.next("ask");
  const nothing = { kind: "logs", lines: [] };
  for (let count = 0; count <= 1000; count++)
    host.send({ type: "answer", requestId, answer: nothing, last: false });
  const another = api(key, "GET", `/sites/${siteId}/logs`);
  host.send({
    type: "answer",
    requestId: (await host.next("ask")).requestId,
    answer: nothing,
    last: true,
  });
  expect((await another).status).toBe(200);
  expect(host.waiting()).toContainEqual({ type: "endAsk", requestId });
  expect((await reading).status).toBe(409);
});

it("a tenant's secrets that no message holds are refused where they would be masked, and the host stays connected", async () => {
  const secrets = (version: number) =>
    Array.from({ length: 5 }, (_, at) => ({
      key: `SECRET_${at}`,
      value: `${version}${at}`.padEnd(32_000, "x"),
      encrypted: true,
    }));
  for (let version = 1; version <= 7; version++)
    expect((await api(key, "PATCH", `/sites/${siteId}`, { envVariables: secrets(version) })).status).toBe(
      200,
    );
  for (const path of ["logs", "logs/search?text=x", "logs?follow=1", "files?path=/"]) {
    const { status, body } = await api<{ reason: string }>(key, "GET", `/sites/${siteId}/${path}`);
    expect([path, status, body.reason]).toEqual([
      path,
      409,
      expect.stringContaining("too large to be masked"),
    ]);
  }
  expect(host.waiting()).toEqual([]);
  const { siteId: other } = await runningSite(key, host);
  expect(other).not.toBe(siteId);
});

describe("an answer that is too long, or none of the protocol,", () => {
  const lines = (text: string, at = new Date().toISOString()) => [{ at, stream: "stdout", text }];
  const unfit = [
    { kind: "logs", lines: lines("x", "Error") },
    { kind: "logs", lines: lines("x".repeat(maxFrameBytes)) },
  ];

  it("ends its question alone, with a reason", async () => {
    for (const answer of unfit) {
      const reading = api<{ reason: string }>(key, "GET", `/sites/${siteId}/logs`);
      const { requestId } = await host.next("ask");
      // What came before it is not all that there is.
      const part = { kind: "logs", lines: lines("one") };
      host.send({ type: "answer", requestId, answer: part, last: false });
      host.send({ type: "answer", requestId, answer, last: true });
      const { status, body } = await reading;
      expect([status, body.reason]).toEqual([409, unfitAnswer.error]);
      expect(await host.next("endAsk")).toEqual({ type: "endAsk", requestId });
    }
  });

  it("ends what a reader follows, and nothing that others do", async () => {
    const headers = { Authorization: `Bearer ${key}` };
    const follow = async () => {
      const { body } = await call(`/api/v1/sites/${siteId}/logs?follow=1`, { headers });
      const { requestId } = await host.next("ask");
      return { requestId, reader: body!.pipeThrough(new TextDecoderStream()).getReader() };
    };
    for (const answer of unfit) {
      const [one, other] = [await follow(), await follow()];
      host.send({ type: "answer", requestId: one.requestId, answer, last: false });
      expect(await host.next("endAsk")).toEqual({ type: "endAsk", requestId: one.requestId });
      expect((await one.reader.read()).value).toBe(": following\n\n");
      expect((await one.reader.read()).done).toBe(true);
      const good = { kind: "logs", lines: lines("goes on") };
      host.send({ type: "answer", requestId: other.requestId, answer: good, last: false });
      await other.reader.read();
      expect((await other.reader.read()).value).toContain("goes on");
      await other.reader.cancel();
      host.send({ type: "answer", requestId: other.requestId, answer: good, last: false });
      await host.next("endAsk");
    }
  });

  it("to a question that nobody has asked counts like any other message", async () => {
    const stranger = await readyAgent();
    for (let count = 0; count < 300; count++)
      stranger.send({ type: "answer", requestId: "r", answer: unfit[1], last: true });
    expect((await stranger.closed).code).toBe(4002);
  });
});

it("what a reader follows does not count: a site may write without end", async () => {
  const headers = { Authorization: `Bearer ${key}` };
  const { body } = await call(`/api/v1/sites/${siteId}/logs?follow=1`, { headers });
  const reader = body!.getReader();
  const { requestId } = await host.next("ask");
  const lines = [{ at: new Date().toISOString(), stream: "stdout", text: "x" }];
  let events = 0;
  const decoder = new TextDecoder();
  for (let sent = 0; events < 21_000; sent++) {
    host.send({ type: "answer", requestId, answer: { kind: "logs", lines }, last: false });
    // As far ahead of the reader as one may be.
    while (sent - events > 1000)
      events += decoder.decode((await reader.read()).value).split("data: ").length - 1;
  }
  await reader.cancel();
  expect(await host.next("endAsk")).toEqual({ type: "endAsk", requestId });
});

it("what only a newer agent knows is skipped, and counts like any other message", async () => {
  host.send({ type: "weather", of: "a later version" });
  const reading = api<{ data: unknown[] }>(key, "GET", `/sites/${siteId}/logs`);
  const { requestId } = await host.next("ask");
  host.send({ type: "answer", requestId, answer: { kind: "logs", lines: [] }, last: true });
  expect((await reading).status).toBe(200);
  const stranger = await readyAgent();
  const of = "x".repeat(maxFrameBytes - 100);
  for (let count = 0; count < 300; count++) stranger.send({ type: "weather", of });
  expect((await stranger.closed).code).toBe(4002);
});

it("a host that reports its slots and its ingress all the time occupies the database with one message at a time", async () => {
  const stranger = await readyAgent();
  let [open, most] = [0, 0];
  const prepare = bindings.DB.prepare.bind(bindings.DB);
  const counted = (statement: D1PreparedStatement): D1PreparedStatement =>
    Object.assign(Object.create(statement), {
      bind: (...values: unknown[]) => counted(statement.bind(...values)),
      run: async () => {
        most = Math.max(most, ++open);
        return statement.run().finally(() => open--);
      },
    }) as D1PreparedStatement;
  vi.spyOn(bindings.DB, "prepare").mockImplementation((sql) => {
    const statement = prepare(sql);
    return /^update "hosts" set "(?:slots|ingress_replaced_at)"/.test(sql) ? counted(statement) : statement;
  });
  onTestFinished(() => void vi.restoreAllMocks());
  const at = (count: number) => new Date(count * 1000).toISOString();
  for (let count = 1; count <= 40; count++)
    stranger.send(ready(1, { slots: 0, ingressReplacedAt: at(count) }));
  const isLast = async () => {
    const row = await run("SELECT ingress_replaced_at AS at FROM hosts WHERE id = ?", stranger.hostId);
    return (row.results[0] as { at: number }).at === 40_000;
  };
  await vi.waitUntil(isLast);
  expect([most, open]).toEqual([1, 0]);
});

it("more memory than a host reported first is not used until an operator accepts it, so that it attracts no new sites", async () => {
  const region = uniqueName("region");
  const facts = (memoryMb: number) => ({ cpuCount: 2, memoryMb });
  const [token, honestToken] = [await hostIn(region), await hostIn(region)];
  const honest = await readyAgent(10, honestToken, facts(20_000));
  const before = await readyAgent(10, token, facts(10_000));
  before.close();
  const grown = await readyAgent(10, token, facts(100_000));
  onTestFinished(() => [honest, grown].forEach((one) => one.close()));
  const shown = () => hostRecord(grown.hostId);
  expect(await shown()).toMatchObject({
    memoryMb: 10_000,
    problems: [expect.stringContaining(`berth hosts set ${grown.hostId} memoryMb=100000`)],
  });
  const placed = async () => {
    const { siteId: id, invoiceToken } = await createSite(key, { region });
    await pay(invoiceToken);
    await vi.waitUntil(async () => (await site(key, id)).hostId !== null);
    return (await site(key, id)).hostId;
  };
  expect(await placed()).toBe(honest.hostId);
  const set = async (memoryMb: number | null) =>
    (await api(await operator(), "PATCH", `/hosts/${grown.hostId}`, { memoryMb })).body;
  // A limit of the operator's own is no problem.
  expect(await set(8000)).toMatchObject({ memoryMb: 8000, problems: [] });
  expect(await set(null)).toMatchObject({ memoryMb: 100_000, problems: [] });
  expect(await placed()).toBe(grown.hostId);
});

describe("a version is recorded only with what other hosts can be told, so that its site can still be deployed and moved", () => {
  const long = "x".repeat(100_000);
  it.each([
    { commit: "--upload-pack=touch" },
    { commitMessage: long },
    { imageDigest: "latest" },
    { buildKey: long },
  ])("%o fails at once, with the reason, and the site is deployed again", async (unfit) => {
    const errors = vi.spyOn(console, "error").mockReturnValue();
    onTestFinished(() => errors.mockRestore());
    const deploy = () =>
      api<{ deploymentId: string }>(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    const recorded = async (id: string) => (await api(key, "GET", `/deployments/${id}`)).body;
    const first = (await deploy()).body.deploymentId;
    const { job, attempt } = await host.next("job");
    await finish(host, job, attempt, { ...deployResult, ...unfit });
    expect(await recorded(first)).toMatchObject({
      status: "FAILED",
      error: expect.stringContaining("not of the expected form"),
    });
    expect(errors.mock.calls.join()).toContain(job.id);
    const second = (await deploy()).body.deploymentId;
    const again = await host.next("job");
    await finish(host, again.job, again.attempt, deployResult);
    const { commit, commitMessage } = deployResult;
    expect(await recorded(second)).toMatchObject({ status: "LIVE", commit, commitMessage });
  });
});

it("a second hello over one connection ends it", async () => {
  host.send(hello());
  expect((await host.closed).code).toBe(4002);
});

it("an agent that sends all its logs again after a reconnect is heard to the end", async () => {
  const { body } = await api<{ deploymentId: string }>(key, "PATCH", `/sites/${siteId}`, {
    action: "deploy",
  });
  const { job, attempt } = await host.next("job");
  const line = { at: new Date().toISOString(), stream: "stdout", text: "x" };
  for (let firstSeq = 1; firstSeq <= 2000; firstSeq++)
    host.send({
      type: "log",
      jobId: job.id,
      attempt,
      deploymentId: body.deploymentId,
      firstSeq,
      lines: [line],
    });
  await finish(host, job, attempt, deployResult);
  const acked = host.waiting().filter(({ type }) => type === "logAck");
  expect(acked.at(-1)).toMatchObject({ lastSeq: 2000 });
});

describe("a site's page is small and comes at once, whatever its host says of", () => {
  const shown = async (path: string, answers: Record<string, object>) => {
    const { visitor } = await signedIn(key);
    const page = visitor.get(`/sites/${siteId}/${path}`);
    for (const _ of Object.keys(answers)) {
      const { requestId, question } = await host.next("ask");
      const answer = { kind: question.kind, ...answers[question.kind] };
      host.send({ type: "answer", requestId, answer, last: true });
    }
    return page;
  };

  it("the time that it counted requests in", async () => {
    const { answer: stats } = operations.getSiteRequestStats.examples;
    const years = { from: "1970-01-01T00:00:00.000Z", to: "2030-01-01T00:00:00.000Z", intervalSeconds: 3600 };
    const page = await shown("requests", {
      requests: { requests: [] },
      requestStats: { stats: { ...stats, ...years } },
    });
    expect(page.status).toBe(200);
    expect(page.text.length).toBeLessThan(200_000);
  });

  it("the replicas that it measured", async () => {
    const samples = Array.from({ length: 1000 }, (_sample, minute) => ({
      at: new Date(Date.now() - minute * 60_000).toISOString(),
      cpuMilli: 1,
      memoryMb: 1,
      networkInBytes: 1,
      networkOutBytes: 1,
      diskMb: 1,
      replicas: Array.from({ length: 14 }, (_replica, at) => ({
        replica: minute * 14 + at + 1,
        cpuMilli: 1,
        memoryMb: 1,
      })),
    }));
    const page = await shown("metrics", { metrics: { samples }, events: { events: [] } });
    expect(page.status).toBe(200);
    expect(page.text.length).toBeLessThan(200_000);
    expect(page.text).toContain("too large to be sent");
  });
});
