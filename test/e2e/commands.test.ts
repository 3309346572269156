import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Command } from "../../protocol/api/commands.ts";
import type { LogLine } from "../../protocol/api/deployments.ts";
import type { Schedule } from "../../protocol/api/schedules.ts";
import type { Site } from "../../protocol/api/sites.ts";
import {
  api,
  launch,
  local,
  plainServer,
  remove,
  Repository,
  site,
  stateDirectory,
  until,
} from "./service.ts";

const secret = "correct-horse-battery";
let record: Site;

beforeAll(async () => {
  const repository = new Repository({
    ...plainServer("one"),
    Dockerfile: `FROM node:24-bookworm-slim\nWORKDIR /app\nCOPY . .\nUSER node\nCMD ["node", "server.js"]\n`,
    "marker.txt": "of this version",
  });
  record = await launch({ githubUrl: repository.address });
  expect(record.status).toBe("RUNNING");
  await api("PATCH", `/sites/${record.id}`, {
    envVariables: [{ key: "TOKEN", value: secret, encrypted: true }],
  });
});
afterAll(() => remove(record.id));

async function start(command: string): Promise<Command> {
  const { status, body } = await api<Command>("POST", `/sites/${record.id}/commands`, {
    command,
    timeoutSeconds: 120,
  });
  expect(status).toBe(202);
  return body;
}
const ended = (id: string) =>
  until(
    async () => (await api<Command>("GET", `/commands/${id}`)).body,
    ({ finishedAt }) => finishedAt !== null,
  );
const linesOf = async (id: string) =>
  (await api<{ data: LogLine[] }>("GET", `/commands/${id}/logs`)).body.data.map(({ text }) => text);
const containers = () =>
  execFileSync("docker", ["ps", "--all", "--quiet", "--filter", `label=berth.commands-of=${record.id}`], {
    encoding: "utf8",
  }).trim();

const siteContainers = () =>
  execFileSync("docker", ["ps", "--all", "--quiet", "--filter", `label=berth.site=${record.id}`], {
    encoding: "utf8",
  }).match(/\w+/g) ?? [];

/** Server-sent events after one, as they come, until the log ends or enough have. */
const follow = (id: string, after: string | null, enough = Infinity) =>
  new Promise<{ id: string; text: string }[]>((resolve, reject) => {
    const got: { id: string; text: string }[] = [];
    let rest = "";
    const headers = {
      Authorization: `Bearer ${local.apiKey}`,
      ...(after !== null && { "Last-Event-ID": after }),
    };
    const outgoing = http.get(`${local.baseUrl}/commands/${id}/logs?follow=1`, { headers }, (response) => {
      expect(response.headers["content-type"]).toBe("text/event-stream");
      response.setEncoding("utf8").on("data", (chunk: string) => {
        const parts = (rest + chunk).split("\n\n");
        rest = parts.pop() ?? "";
        for (const part of parts) {
          const match = /^id: (.*)\nevent: line\ndata: (.*)$/.exec(part);
          if (match) got.push({ id: match[1] ?? "", text: (JSON.parse(match[2] ?? "") as LogLine).text });
        }
        if (got.length >= enough || rest.startsWith("event: end")) outgoing.destroy();
      });
      response.once("close", () => resolve(got)).once("error", () => resolve(got));
    });
    outgoing.once("error", (error) => (got.length > 0 ? resolve(got) : reject(error)));
  });

it("a command runs in the site's image and newest environment; its log is followed, and gone on with", async () => {
  const { id } = await start(
    'cat marker.txt; echo; echo "secret $TOKEN"; for i in 1 2 3 4 5 6 7 8 9; do echo "line $i"; sleep 0.3; done; exit 3',
  );
  const first = await follow(id, null, 4);
  const others = await follow(id, first.at(-1)?.id ?? "");
  expect([...first, ...others].map(({ text }) => text)).toEqual([
    "of this version",
    "secret •••",
    ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((count) => `line ${count}`),
    expect.stringMatching(/^Command failed: exited with 3/),
  ]);
  const run = await ended(id);
  expect(run).toMatchObject({ status: "FAILED", exitCode: 3, trigger: "api", scheduleId: null });
  expect(run.deploymentId).toBe((await site(record.id)).latestDeployment?.id);
  await until(containers, (left) => left === "");
});

it("a deployment goes through while a command runs, and a command is cancelled", async () => {
  const { id } = await start("sleep 100");
  await until(
    async () => (await api<Command>("GET", `/commands/${id}`)).body.status,
    (status) => status === "RUNNING",
  );
  await api("PATCH", `/sites/${record.id}`, { action: "deploy" });
  await until(
    async () => (await site(record.id)).latestDeployment?.status,
    (status) => status === "LIVE",
  );
  // The old version is gone by then.
  await until(siteContainers, (found) => found.length === 1);
  expect((await api<Command>("GET", `/commands/${id}`)).body.status).toBe("RUNNING");
  expect((await api("POST", `/commands/${id}/cancel`)).status).toBe(202);
  expect(await ended(id)).toMatchObject({ status: "CANCELLED", error: null });
  await until(containers, (left) => left === "");
});

it("kill -9 of the agent in mid-command: it goes on, no line is lost or said twice, and its end is reported", async () => {
  const { id } = await start('for i in $(seq 1 300); do echo "line $i"; sleep 0.03; done; exit 5');
  await until(
    () => linesOf(id),
    (lines) => lines.length > 40,
  );
  const processes = JSON.parse(readFileSync(join(stateDirectory, "processes.json"), "utf8")) as Record<
    string,
    number
  >;
  process.kill(processes["agent"] ?? 0, "SIGKILL");
  expect(await ended(id)).toMatchObject({ exitCode: 5, error: expect.stringMatching(/^exited with 5/) });
  const lines = await until(
    () => linesOf(id),
    (list) => list.length > 300,
  );
  expect(lines).toEqual([
    ...Array.from({ length: 300 }, (_, index) => `line ${index + 1}`),
    expect.stringMatching(/^Command failed: exited with 5/),
  ]);
  await until(containers, (left) => left === "");
});

it("a schedule runs its command each minute by itself", async () => {
  const made = await api<Schedule>("POST", `/sites/${record.id}/schedules`, {
    name: "each-minute",
    cron: "* * * * *",
    command: "echo by the clock",
  });
  expect(made.status).toBe(201);
  const run = await until(
    async () =>
      (await api<{ data: Command[] }>("GET", `/sites/${record.id}/commands?scheduleId=${made.body.id}`)).body
        .data[0],
    (found) => found?.finishedAt != null,
    100_000,
  );
  expect(run).toMatchObject({ status: "SUCCEEDED", trigger: "schedule", scheduleId: made.body.id });
  expect(Date.parse(run?.createdAt ?? "") - Date.parse(made.body.nextRunAt ?? "")).toBeLessThan(10_000);
  expect(await linesOf(run?.id ?? "")).toEqual(["by the clock", "Command succeeded."]);
  expect((await api("DELETE", `/schedules/${made.body.id}`)).status).toBe(200);
});
