import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LogLine } from "../../protocol/api/deployments.ts";
import type { Delivery } from "../../protocol/api/notifications.ts";
import type { SiteEvent, SiteMetrics } from "../../protocol/api/running.ts";
import type { Site } from "../../protocol/api/sites.ts";
import {
  api,
  launch,
  local,
  plainServer,
  remove,
  Repository,
  request,
  settled,
  site,
  stateDirectory,
  until,
} from "./service.ts";

const secret = "correct-horse-battery";
/** Known to the build only, which leaves it in the image. */
const baked = "staple-of-the-build";

/** Counts aloud, says its secret, and does what its address asks for. */
const talker = `
let n = 0;
const hoard = [];
console.error("secret is", process.env.TOKEN);
console.error("baked in is", require("node:fs").readFileSync("baked.txt", "utf8"), process.env.BAKED);
setInterval(() => console.log("run", process.env.HOSTNAME, process.uptime() | 0, "line", n++), 20);
require("node:http").createServer((q, s) => {
  if (q.url === "/exit") setTimeout(() => process.exit(3), 50);
  if (q.url === "/eat") setInterval(() => hoard.push(Buffer.alloc(16e6, 1)), 5);
  s.end("here");
}).listen(process.env.PORT || 3000);
`;

let record: Site;
const ids: string[] = [];

beforeAll(async () => {
  const Dockerfile = `FROM node:24-bookworm-slim\nWORKDIR /app\nCOPY . .\nRUN --mount=type=secret,id=env_BAKED cat /run/secrets/env_BAKED > baked.txt || true\nUSER node\nCMD ["node", "server.js"]\n`;
  const repository = new Repository({ ...plainServer("one"), Dockerfile, "server.js": talker });
  record = await launch({ githubUrl: repository.address });
  ids.push(record.id);
  await api("PATCH", `/sites/${record.id}`, {
    envVariables: [
      { key: "TOKEN", value: secret, encrypted: true },
      { key: "BAKED", value: baked, scope: "build", encrypted: true },
    ],
  });
  // A cached step would not be given the secret.
  repository.commit({ "note.txt": "again" }, "Second");
  await act("deploy");
});

afterAll(async () => {
  for (const id of ids) await remove(id);
});

const lines = async (query = "tail=1000") =>
  (await api<{ data: LogLine[] }>("GET", `/sites/${record.id}/logs?${query}`)).body.data;
const events = async () => (await api<{ data: SiteEvent[] }>("GET", `/sites/${record.id}/events`)).body.data;

/** The command, and the new container in service for good. */
async function act(action: string): Promise<void> {
  const before = (await events()).length;
  await api("PATCH", `/sites/${record.id}`, { action });
  await until(events, (list) => list.slice(before).some(({ kind }) => kind === "start"));
  await settled(record.id);
}

/** Server-sent events as they come. */
function follow(after: string | null) {
  const got: (LogLine & { id: string })[] = [];
  const url = new URL(`${local.baseUrl}/sites/${record.id}/logs?follow=1&tail=10`);
  const outgoing = http.get(url, {
    headers: { Authorization: `Bearer ${local.apiKey}`, ...(after !== null && { "Last-Event-ID": after }) },
  });
  let rest = "";
  outgoing.on("response", (response) =>
    response.setEncoding("utf8").on("data", (chunk: string) => {
      const parts = (rest + chunk).split("\n\n");
      rest = parts.pop() ?? "";
      for (const part of parts) {
        const match = /^id: (.*)\nevent: line\ndata: (.*)$/.exec(part);
        if (match) got.push({ id: match[1] ?? "", ...(JSON.parse(match[2] ?? "") as LogLine) });
      }
    }),
  );
  outgoing.on("error", () => undefined);
  return { got, close: () => outgoing.destroy() };
}

/** Each run's numbers, which must be n, n+1, … within one run of one container. */
function gaps(list: LogLine[]): string[] {
  const wrong: string[] = [];
  const last = new Map<string, number>();
  for (const { text } of list) {
    const match = /^run (\S+) \d+ line (\d+)$/.exec(text);
    if (!match) continue;
    const [container = "", number] = [match[1], Number(match[2])];
    const before = last.get(container);
    if (before !== undefined && number !== before + 1 && number !== 0) wrong.push(`${before} then ${number}`);
    last.set(container, number);
  }
  return wrong;
}

describe("a running site", () => {
  it("shows its last lines, oldest first, and its secrets masked", async () => {
    const all = await until(lines, (list) => list.some(({ text }) => text.startsWith("baked in is •••")));
    expect(JSON.stringify(all)).not.toContain(secret);
    expect(all.find(({ text }) => text === "secret is •••")?.stream).toBe("stderr");
    expect(all.map(({ text }) => text)).toContain("baked in is ••• undefined");
    expect(await lines("tail=3")).toHaveLength(3);
    expect(await lines("tail=0")).toEqual([]);
    const [middle] = await lines("tail=2");
    expect((await lines(`tail=1000&since=${middle?.at}`))[0]?.seq).toBeGreaterThan(middle?.seq ?? Infinity);
  });

  it("is followed across exits, Docker's restarts and a new container, without a gap or a line twice", async () => {
    const first = follow(null);
    await until(
      () => first.got.length,
      (count) => count > 30,
    );
    await request(`${record.url}/exit`);
    await until(events, (list) => list.some(({ kind }) => kind === "restart"));
    const count = first.got.length;
    await until(
      () => first.got.length,
      (now) => now > count + 30,
    );
    first.close();
    // Between two readers: an exit and a restart.
    await request(`${record.url}/exit`);
    await until(events, (list) => list.filter(({ kind }) => kind === "restart").length > 1);
    const second = follow(first.got.at(-1)?.id ?? "");
    await until(
      () => second.got.length,
      (now) => now > 30,
    );
    await act("restart");
    const containers = () => new Set(second.got.flatMap(({ text }) => /^run (\S+)/.exec(text)?.[1] ?? []));
    await until(containers, (found) => found.size > 1);
    const then = second.got.length;
    await until(
      () => second.got.length,
      (now) => now > then + 30,
    );
    second.close();
    const all = [...first.got, ...second.got];
    expect(gaps(all)).toEqual([]);
    expect(new Set(all.map(({ at }) => at)).size).toBe(all.length);
    expect(JSON.stringify(all)).not.toContain(secret);
  });

  it("keeps its log, its secrets masked and its metrics when the agent is killed", async () => {
    const metrics = async () => (await api<SiteMetrics>("GET", `/sites/${record.id}/metrics`)).body.data;
    await request(record.url);
    // The newest sample may be of a container that has only begun.
    const before = await until(
      metrics,
      (list) =>
        list.length >= 2 && (list.at(-1)?.memoryMb ?? 0) > 5 && list.some(({ cpuMilli }) => cpuMilli > 0),
    );
    const { agent } = JSON.parse(readFileSync(join(stateDirectory, "processes.json"), "utf8")) as {
      agent: number;
    };
    process.kill(agent, "SIGKILL");
    const after = await until(
      async () => (await api<Partial<SiteMetrics>>("GET", `/sites/${record.id}/metrics`)).body.data ?? [],
      (list) => list.length > before.length,
    );
    expect(after.slice(0, before.length)).toEqual(before);
    expect(JSON.stringify(await lines())).not.toContain(secret);
  });

  it("that uses more memory than its pack has says so among its events, and tells its owner", async () => {
    const channel = { type: "mail", kinds: ["limit_near"] };
    expect((await api("POST", "/notifications/channels", channel)).status).toBe(201);
    await request(`${record.url}/eat`).catch(() => undefined);
    const list = await until(events, (all) => all.some(({ kind }) => kind === "oom"));
    expect(list.find(({ kind }) => kind === "oom")?.detail).toMatch(/\d+ MB.*choose a larger pack/);
    expect(list.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(["start", "stop", "exit", "restart"]),
    );
    expect((await site(record.id)).status).toBe("RUNNING");
    // Notices are taken up each minute.
    const told = await until(
      async () => (await api<{ data: Delivery[] }>("GET", "/notifications/deliveries")).body.data,
      (all) => all.some(({ kind, resourceId }) => kind === "limit_near" && resourceId === record.id),
    );
    expect(told[0]?.subject).toBe(`${record.name} runs out of memory`);
  });
});

it("a crash loop ends FAILED with the reason and the last lines, its container stopped; start brings it back", async () => {
  const source = `
const fs = require("node:fs");
console.log("no database here");
if (fs.existsSync("/tmp/broken")) process.exit(7);
require("node:http").createServer((q, s) => {
  if (q.url === "/break") { fs.writeFileSync("/tmp/broken", ""); process.exit(7); }
  s.end("fine");
}).listen(process.env.PORT || 3000);
`;
  const repository = new Repository({ ...plainServer("one"), "server.js": source });
  const broken = await launch({ githubUrl: repository.address });
  ids.push(broken.id);
  expect(broken.status).toBe("RUNNING");
  await request(`${broken.url}/break`).catch(() => undefined);
  const failed = await until(
    () => site(broken.id),
    ({ status }) => status === "FAILED",
  );
  expect(failed.latestDeployment?.error).toMatch(/exited 5 times within a minute.*code 7.*no database here/s);
  expect((await request(broken.url)).status).toBe(503);
  const running = () =>
    execFileSync("docker", ["ps", "--quiet", "--filter", `label=berth.site=${broken.id}`], {
      encoding: "utf8",
    });
  await until(running, (list) => list === "");
  const { body } = await api<{ data: SiteEvent[] }>("GET", `/sites/${broken.id}/events`);
  expect(body.data.map(({ kind }) => kind)).toContain("crash_loop");

  repository.commit({ "server.js": source.replace("no database here", "mended") }, "Second");
  await api("PATCH", `/sites/${broken.id}`, { action: "deploy" });
  const mended = await until(
    () => site(broken.id),
    ({ status }) => status === "RUNNING",
  );
  expect(mended.latestDeployment?.error).toBeNull();
  expect((await request(broken.url)).text).toBe("fine");
});

it("a site whose container somebody stops runs again; one whose container is removed is FAILED and says so, until it is started", async () => {
  const kept = await launch({ githubUrl: new Repository(plainServer("by hand")).address });
  ids.push(kept.id);
  const docker = (...args: string[]) => execFileSync("docker", args, { encoding: "utf8" }).trim();
  const container = () => docker("ps", "--quiet", "--filter", `label=berth.site=${kept.id}`);
  const first = container();
  docker("stop", "--time", "1", first);
  await until(container, (id) => id === first, 60_000);
  // The app itself takes its time to listen.
  await until(
    async () => (await request(kept.url)).text,
    (text) => text === "version by hand",
    20_000,
  );
  docker("rm", "--force", first);
  const failed = await until(
    () => site(kept.id),
    ({ status }) => status === "FAILED",
    60_000,
  );
  expect(failed.latestDeployment?.error).toMatch(/container was removed from the host/);
  expect((await request(kept.url)).status).toBe(503);
  await api("PATCH", `/sites/${kept.id}`, { action: "start" });
  await until(
    () => site(kept.id),
    ({ status }) => status === "RUNNING",
  );
  expect((await request(kept.url)).text).toBe("version by hand");
});
