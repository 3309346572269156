import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Reader } from "../../worker/actor.ts";
import type { DeploymentLog } from "../../worker/objects/deployment-log.ts";
import {
  account,
  api,
  bindings,
  call,
  deployResult,
  deployingSite,
  fail,
  finish,
  readyAgent,
  runningSite,
  site,
} from "./service.ts";

const line = (text: string) => ({ at: "2026-11-21T10:00:00.000Z", stream: "stdout" as const, text });
const anyone = { accountId: "acc_1", credential: "key_1" } as const;
const newLog = () => bindings.DEPLOYMENT_LOG.get(bindings.DEPLOYMENT_LOG.newUniqueId());
const followed = (key: string, id: string) =>
  call(`/api/v1/deployments/${id}/logs?follow=1`, { headers: { Authorization: `Bearer ${key}` } });
const textsOf = (events: string) => [...events.matchAll(/"text":"([^"]*)"/g)].map(([, text]) => text);

afterEach(() => vi.useRealTimers());

describe("the log of a deployment", () => {
  it("has nothing after its end, and the agent is rid of what came late", async () => {
    const log = newLog();
    expect(await log.append(1, 1, [line("one")])).toBe(1);
    await log.finish("It is over.");
    expect(await log.append(1, 2, [line("two"), line("three")])).toBe(3);
    expect(await log.append(2, 1, [line("another attempt")])).toBe(1);
    expect((await log.read(0, 100)).map(({ text }) => text)).toEqual(["one", "It is over."]);
    const events = await new Response(await log.follow(0, anyone)).text();
    expect(textsOf(events)).toEqual(["one", "It is over."]);
    expect(events).toMatch(/event: end\ndata: {}\n\n$/);
  });

  it("says of each line which step wrote it, also where it began before lines had one", async () => {
    const log = newLog();
    await log.append(1, 1, [line("before")]);
    await runInDurableObject(log, (_object, state) => {
      state.storage.sql.exec("ALTER TABLE lines DROP COLUMN step");
    });
    await evictDurableObject(log);
    await log.append(1, 2, [{ ...line("compiles"), step: "build" }]);
    expect((await log.read(0, 100)).map(({ text, step }) => [text, step])).toEqual([
      ["before", undefined],
      ["compiles", "build"],
    ]);
    await log.finish("It is over.");
    expect(await new Response(await log.follow(1, anyone)).text()).toContain(
      '"text":"compiles","step":"build"',
    );
  });

  it("says at once that it is followed, and every fifteen seconds that it is still there", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const log = newLog();
    await account();
    const owner = await bindings.DB.prepare(
      "SELECT id AS credential, account_id AS accountId FROM api_keys",
    ).first<Reader>();
    const reader = (await log.follow(0, owner ?? anyone))?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).toBe(": following\n\n");
    await runInDurableObject(log, () => void vi.advanceTimersByTime(15_000));
    expect((await reader?.read())?.value).toBe(": still here\n\n");
    await log.finish("It is over.");
    expect((await reader?.read())?.value).toContain("It is over.");
    await reader?.cancel();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is followed by twenty at most; one that leaves makes room, and one that has ended may be read by all", async () => {
    const key = await account();
    const agent = await readyAgent();
    const { siteId, job, attempt } = await deployingSite(key, agent);
    const path = `/deployments/${(await site(key, siteId)).latestDeployment?.id}/logs?follow=1`;
    const follow = () => call(`/api/v1${path}`, { headers: { Authorization: `Bearer ${key}` } });
    const followers = await Promise.all(Array.from({ length: 20 }, follow));
    expect(followers.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(await api(key, "GET", path)).toMatchObject({
      status: 409,
      body: { error: "conflict", reason: expect.stringContaining("Close one of them") },
    });
    await followers.pop()?.body?.cancel();
    await vi.waitFor(async () => {
      const next = await follow();
      if (next.status === 200) followers.push(next);
      else await next.body?.cancel();
      expect(next.status).toBe(200);
    }, 10_000);
    await finish(agent, job, attempt, deployResult);
    for (const follower of followers) expect(await follower.text()).toContain("event: end");
    const late = await Promise.all(Array.from({ length: 21 }, follow));
    for (const one of late) expect(await one.text()).toContain("event: end");
    agent.close();
  });

  it("of any length is read for who follows it as fast as they take it, and no faster", async () => {
    const log = newLog();
    const count = 5000;
    for (let first = 1; first < count; first += 1000)
      await log.append(
        1,
        first,
        Array.from({ length: 1000 }, (_, index) => line(`${first + index} ${"x".repeat(100)}`)),
      );
    const read = await runInDurableObject(log, async (instance: DeploymentLog) => {
      const asked = vi.spyOn(instance as unknown as { linesAfter(): unknown[] }, "linesAfter");
      const followers = await Promise.all(Array.from({ length: 20 }, () => instance.follow(0, anyone)));
      const readers = followers.map((follower) => follower?.getReader());
      // The head, and what comes first of the lines.
      for (const reader of readers) for (const _ of [1, 2]) await reader?.read();
      const lines = asked.mock.results.reduce((sum, { value }) => sum + (value as unknown[]).length, 0);
      for (const reader of readers) await reader?.cancel();
      asked.mockRestore();
      return lines;
    });
    expect(read).toBeGreaterThanOrEqual(20);
    expect(read).toBeLessThan(20 * 500);
    await log.finish("It is over.");
    const numbers = textsOf(await new Response(await log.follow(0, anyone)).text()).map((text) =>
      parseInt(text ?? ""),
    );
    expect(numbers.slice(0, count)).toEqual(Array.from({ length: count }, (_, index) => index + 1));
    expect(numbers.length).toBe(count + 1);
  });

  it("is whole though its object failed when lines came", async () => {
    const key = await account();
    const agent = await readyAgent();
    const { siteId, job, attempt } = await deployingSite(key, agent);
    const id = (await site(key, siteId)).latestDeployment?.id ?? "";
    const log = bindings.DEPLOYMENT_LOG.get(bindings.DEPLOYMENT_LOG.idFromName(id));
    await runInDurableObject(log, (instance: DeploymentLog) => {
      const append = vi.spyOn(Object.getPrototypeOf(instance) as DeploymentLog, "append");
      append.mockRejectedValueOnce(new Error("The object was reset"));
    });
    agent.send({ type: "log", jobId: job.id, attempt, deploymentId: id, firstSeq: 1, lines: [line("one")] });
    await finish(agent, job, attempt, deployResult);
    expect((await agent.next("logAck")).lastSeq).toBe(1);
    expect(textsOf(await (await followed(key, id)).text())).toEqual(["one", "Deployment is live."]);
    agent.close();
  });

  it("ends with why it failed, without the lines that stand above", async () => {
    const key = await account();
    const agent = await readyAgent();
    const { siteId, job, attempt } = await deployingSite(key, agent);
    const id = (await site(key, siteId)).latestDeployment?.id ?? "";
    const error = "The app exited with code 1: correct it. Its last lines: one | two";
    await fail(agent, job, attempt, error);
    expect(textsOf(await (await followed(key, id)).text())).toEqual([
      "Deployment failed: The app exited with code 1: correct it.",
    ]);
    expect((await site(key, siteId)).latestDeployment?.error).toBe(error);
    agent.close();
  });

  it("and its job go on where they were though the host's link slept in between", async () => {
    const key = await account();
    const agent = await readyAgent();
    const { siteId, job, attempt } = await deployingSite(key, agent);
    const id = (await site(key, siteId)).latestDeployment?.id ?? "";
    const say = async (firstSeq: number) => {
      const lines = [line(`line ${firstSeq}`)];
      agent.send({ type: "log", jobId: job.id, attempt, deploymentId: id, firstSeq, lines });
      expect((await agent.next("logAck")).lastSeq).toBe(firstSeq);
    };
    const sleep = () =>
      evictDurableObject(bindings.HOST_LINK.get(bindings.HOST_LINK.idFromName(agent.hostId)), {
        webSockets: "hibernate",
      });
    await say(1);
    await sleep();
    await say(2);
    await sleep();
    await finish(agent, job, attempt, deployResult);
    expect((await site(key, siteId)).status).toBe("RUNNING");
    expect(textsOf(await (await followed(key, id)).text())).toEqual([
      "line 1",
      "line 2",
      "Deployment is live.",
    ]);
    agent.close();
  });

  it("ends for who follows a deployment that waits, when its site is stopped or deleted", async () => {
    const key = await account();
    const agent = await readyAgent();
    const { siteId } = await runningSite(key, agent);
    const waiting = async () => {
      await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
      const { job, attempt } = await agent.next("job");
      const { body } = await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
      const follower = await followed(key, String(body["deploymentId"]));
      return { follower, endFirst: () => fail(agent, job, attempt, "Cancelled.", true) };
    };
    const first = await waiting();
    await api(key, "PATCH", `/sites/${siteId}`, { action: "stop" });
    expect(await first.follower.text()).toContain("event: end");
    await first.endFirst();
    const stop = await agent.next("job");
    await finish(agent, stop.job, stop.attempt);
    const second = await waiting();
    await api(key, "DELETE", `/sites/${siteId}`);
    expect(await second.follower.text()).toContain("event: end");
    agent.close();
  });

  it("that is over ends also where nothing of it is kept any more", async () => {
    const key = await account();
    const agent = await readyAgent();
    const { siteId } = await runningSite(key, agent);
    const id = (await site(key, siteId)).latestDeployment?.id ?? "";
    await bindings.DEPLOYMENT_LOG.get(bindings.DEPLOYMENT_LOG.idFromName(id)).remove();
    await bindings.DB.prepare("UPDATE deployments SET finished_at = 1 WHERE id = ?").bind(id).run();
    expect(await (await followed(key, id)).text()).toMatch(/event: end\ndata: {}\n\n$/);
    // Reading it has not made it anew.
    const tables = await runInDurableObject(
      bindings.DEPLOYMENT_LOG.get(bindings.DEPLOYMENT_LOG.idFromName(id)),
      (_object, { storage }) =>
        storage.sql.exec("SELECT name FROM sqlite_master WHERE name NOT GLOB '_cf_*'").toArray(),
    );
    expect(tables).toEqual([]);
    agent.close();
  });

  it("ends for who follows it though the news of its end never came", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const key = await account();
    const agent = await readyAgent();
    const { siteId } = await deployingSite(key, agent);
    const id = (await site(key, siteId)).latestDeployment?.id ?? "";
    const log = bindings.DEPLOYMENT_LOG.get(bindings.DEPLOYMENT_LOG.idFromName(id));
    const endedAt = (at: number) =>
      bindings.DB.prepare("UPDATE deployments SET finished_at = ? WHERE id = ?").bind(at, id).run();
    let text = "";
    const reading = (async () => {
      const { body } = await followed(key, id);
      for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) text += part;
    })();
    const beats = async (count: number) => {
      await runInDurableObject(log, () => void vi.advanceTimersByTime(15_000));
      await vi.waitFor(() => expect(text.match(/still here/g)).toHaveLength(count));
    };
    await vi.waitFor(() => expect(text).toContain("following"));
    await beats(1);
    // The news may be on its way.
    await endedAt(Date.now());
    await beats(2);
    await endedAt(Date.now() - 61_000);
    await runInDurableObject(log, () => void vi.advanceTimersByTime(15_000));
    await reading;
    expect(text).toMatch(/event: end\ndata: {}\n\n$/);
    agent.close();
  });
});
