import { beforeEach, expect, it } from "vitest";
import { maxFrameBytes } from "../../protocol/agent/messages.ts";
import { deployResult, account, api, call, finish, hello, readyAgent, runningSite, site } from "./service.ts";

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
