import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import {
  account,
  api,
  bindings,
  call,
  createSite,
  operator,
  operatorCookie,
  pay,
  readyAgent,
  runningSite,
  site,
  siteUrl,
  uniqueName,
  type Agent,
  runningDatabase,
} from "./service.ts";

let own: string;
let host: Agent;
let siteId: string;
let deploymentId: string;
let databaseId: string;
let commandId: string;

beforeAll(async () => {
  own = await operator();
  host = await readyAgent();
  ({ siteId } = await runningSite(own, host));
  ({ databaseId } = await runningDatabase(own, host));
  const deployed = await createSite(own);
  await pay(deployed.invoiceToken);
  await host.next("job");
  deploymentId = (await site(own, deployed.siteId)).latestDeployment?.id ?? "";
  const command = await api<{ id: string }>(own, "POST", `/sites/${siteId}/commands`, { command: "true" });
  commandId = command.body.id;
});

afterEach(() => vi.useRealTimers());

const at = "2026-01-01T00:00:00.000000001Z";

/** Who sends a log: a line of it, and heartbeats. */
type Sender = { say(text: string): Promise<unknown>; beat(): Promise<unknown> };
const beat = () => void vi.advanceTimersByTime(15_000);

async function asked(): Promise<Sender> {
  const { requestId } = await host.next("ask");
  const link = bindings.HOST_LINK.get(bindings.HOST_LINK.idFromName(host.hostId));
  return {
    async say(text) {
      const answer = { kind: "logs", lines: [{ at, stream: "stdout", text }] };
      host.send({ type: "answer", requestId, answer, last: false });
    },
    beat: () => runInDurableObject(link, beat),
  };
}

async function recorded(id: string): Promise<Sender> {
  const log = bindings.DEPLOYMENT_LOG.get(bindings.DEPLOYMENT_LOG.idFromName(id));
  return {
    async say(text) {
      const { length } = await log.read(0, 1000);
      await log.append(1, length + 1, [{ at, stream: "stdout", text }]);
    },
    beat: () => runInDurableObject(log, beat),
  };
}

const headersOf = (Cookie: string) => ({ Cookie, Origin: siteUrl, "Content-Type": "application/json" });

/** Something that opens the account, and its end. */
type Access = { headers: Record<string, string>; end(): Promise<Response> };

async function key(): Promise<Access> {
  const headers = headersOf(await operatorCookie());
  const made = await call("/api/v1/keys", {
    method: "POST",
    headers,
    body: JSON.stringify({ name: "lent" }),
  });
  const { id, key: value } = await made.json<{ id: string; key: string }>();
  return {
    headers: { Authorization: `Bearer ${value}` },
    end: () => call(`/api/v1/keys/${id}`, { method: "DELETE", headers }),
  };
}

async function session(): Promise<Access> {
  const headers = headersOf(await operatorCookie());
  return { headers, end: () => call("/sign-out", { method: "POST", redirect: "manual", headers }) };
}

/** Another operator sees the account as its owner does, until the role is taken. */
async function view(): Promise<Access> {
  const lent = await account();
  const [id, viewed] = await Promise.all(
    [lent, own].map(async (one) => String((await api(one, "GET", "/account")).body["id"])),
  );
  const change = (role: string) =>
    call(`/api/v1/accounts/${id}`, {
      method: "PATCH",
      headers: { Authorization: `Bearer ${own}`, "Content-Type": "application/json" },
      body: JSON.stringify({ role }),
    });
  expect((await change("operator")).status).toBe(200);
  const headers = { Authorization: `Bearer ${lent}`, "X-Berth-View-As": viewed ?? "" };
  return { headers, end: () => change("user") };
}

type Log = () => [path: string, sender: () => Promise<Sender>];
const logs: [string, Log][] = [
  ["a site's log", () => [`/api/v1/sites/${siteId}/logs?follow=1`, asked]],
  ["a database's log", () => [`/api/v1/databases/${databaseId}/logs?follow=1`, asked]],
  [
    "a deployment's log",
    () => [`/api/v1/deployments/${deploymentId}/logs?follow=1`, () => recorded(deploymentId)],
  ],
  ["a command's log", () => [`/api/v1/commands/${commandId}/logs?follow=1`, () => recorded(commandId)]],
];
const pages: [string, Log][] = [
  ["the page of a site's log", () => [`/sites/${siteId}/logs?plain=1`, asked]],
  ["the page of a deployment", () => [`/deployments/${deploymentId}?plain=1`, () => recorded(deploymentId)]],
];

/** All that is told of a log until the heartbeat after its reader's access has ended. */
async function told(access: Access, log: Log): Promise<string> {
  const [path, senderOf] = log();
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const response = await call(path, { headers: access.headers });
  const sender = await senderOf();
  let text = "";
  let isOver = false;
  const reading = (async () => {
    for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) text += part;
    isOver = true;
  })();
  // Also after a heartbeat at which the access goes on.
  for (const line of [uniqueName("line"), uniqueName("line")]) {
    await sender.say(line);
    await vi.waitFor(() => expect(text).toContain(line), 10_000);
    await sender.beat();
  }
  expect((await access.end()).status).toBeLessThan(400);
  await sender.beat();
  await vi.waitFor(() => expect(isOver).toBe(true), 10_000);
  await reading;
  return text;
}

describe.each(logs)("%s", (_, log) => {
  it.each([
    ["key that is revoked", key],
    ["session that ends", session],
    ["viewer whose operator's role is taken", view],
  ])("is told no more after the next heartbeat to a %s", async (_, access) => {
    const text = await told(await access(), log);
    expect(text).toContain(": the key or session has ended");
    expect(text).not.toContain("event: end");
  });
});

describe.each(pages)("%s", (_, log) => {
  it("is cut off at the next heartbeat for a session that has ended", async () => {
    const text = await told(await session(), log);
    expect(text).toContain("Reload the page to continue");
    expect(text).toContain("</html>");
  });
});
