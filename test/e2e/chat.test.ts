import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { OwnAccount } from "../../protocol/api/accounts.ts";
import type { ChatReply } from "../../protocol/api/chat.ts";
import type { SiteHealth } from "../../protocol/api/running.ts";
import type { Site } from "../../protocol/api/sites.ts";
import { api, launch, plainServer, remove, Repository, request, settled, site, until } from "./service.ts";

let record: Site;
let conversationId: string | undefined;

beforeAll(async () => {
  const { id } = (await api<OwnAccount>("GET", "/account")).body;
  await api("POST", "/credits/grants", { accountId: id, amount: 50 });
  const server = `console.log("marker of the log");
require("node:http").createServer((_, s) => s.end("here")).listen(process.env.PORT);`;
  const repository = new Repository({ ...plainServer("one"), "server.js": server });
  record = await launch({ githubUrl: repository.address });
});
afterAll(() => remove(record.id));

/** To the assistant as `npm start` gives it: without a model, by commands. */
async function says(message: string): Promise<ChatReply> {
  const { status, body } = await api<ChatReply>("POST", "/chat", {
    message,
    ...(conversationId && { conversationId }),
  });
  expect([status, body]).toMatchObject([200, {}]);
  ({ conversationId } = body);
  return body;
}

describe("the assistant, on a site that runs", () => {
  it("shows what its container wrote, holds and takes, and how it is", async () => {
    const { name, id } = record;
    expect((await says(`get_site_logs site=${name}`)).message).toContain("marker of the log");
    expect((await says(`browse_files site=${name} path=/app`)).message).toContain("server.js");
    const disk = (await says(`get_disk_usage site=${name}`)).message;
    const current = (await site(id)).currentDeployment?.id;
    expect(disk).toContain(`"deploymentId": "${current}"`);
    expect(disk).toMatch(/"sizeMb": [1-9]/);
    expect((await says(`run_health_check site=${name}`)).message).toContain('"isHealthy": true');
  });

  it("checks it by TCP from now on, in a container that replaces the other", async () => {
    const health = async () => (await api<SiteHealth>("GET", `/sites/${record.id}/health`)).body;
    const [before] = (await health()).containers;
    await says(`set_health_check site=${record.name} check={"kind":"tcp","intervalSeconds":10}`);
    const { containers } = await until(health, ({ containers: all }) =>
      all.some((one) => one.serves && one.startedAt !== before?.startedAt),
    );
    const serving = containers.find(({ serves, startedAt }) => serves && startedAt !== before?.startedAt);
    expect(serving?.probe).toMatchObject({ path: null, isHealthy: true });
    expect(await settled(record.id)).toMatchObject({ status: "RUNNING", healthCheck: { kind: "tcp" } });
  });

  it("stops it after a yes, and not before", async () => {
    const asked = await says(`stop_site site=${record.name}`);
    expect(asked.pendingAction?.summary).toContain(`Stop the site ${record.name}`);
    expect((await request(record.url)).text).toBe("here");
    expect((await says("yes")).toolCalls).toEqual([{ tool: "stop_site", ok: true }]);
    await until(
      () => site(record.id),
      ({ status }) => status === "STOPPED",
    );
    expect((await request(record.url)).status).toBe(503);
  });
});
