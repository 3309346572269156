import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Host } from "../../protocol/api/hosts.ts";
import {
  api,
  launch,
  plainServer,
  remove,
  Repository,
  request,
  serverSource,
  site,
  until,
} from "./service.ts";
import { docker, hostRecord, startSecondHost, type SecondHost } from "./second-host.ts";

let second: SecondHost;
beforeAll(async () => {
  second = await startSecondHost();
});
afterAll(async () => {
  await second.stop();
});

it("an agent of another version replaces itself, and no site is touched", async () => {
  const made = await launch({ githubUrl: new Repository(plainServer("steady")).address });
  expect(made.hostId).toBe(second.id);
  const url = new URL(made.url);
  url.port = String(second.ingressPort);
  const containers = docker("ps", "--quiet", "--filter", `label=berth.site=${made.id}`);
  const served = readFileSync(second.agentFile, "utf8");
  writeFileSync(second.agentFile, `${served}\n// An earlier version.\n`);
  const load = ask(url.href);
  expect(await second.updateAgent()).toBe(0);
  expect(readFileSync(second.agentFile, "utf8")).toBe(served);
  // As the unit of systemd does.
  second.startAgent();
  await delay(5000);
  await until(
    () => hostRecord(second.id),
    (host) => host?.connected === true,
  );
  const asked = load.asked();
  await until(load.asked, (now) => now > asked + 20);
  await load.stop();
  expect(load.failures).toEqual([]);
  expect(docker("ps", "--quiet", "--filter", `label=berth.site=${made.id}`)).toBe(containers);
  await remove(made.id);
});

/** Asks 20 times a second until told to stop; answers what came back besides 200. */
function ask(url: string) {
  const over = new AbortController();
  let asked = 0;
  const failures: string[] = [];
  const loop = (async () => {
    while (!over.signal.aborted) {
      asked++;
      await request(url).then(
        ({ status, text }) => status === 200 || failures.push(`${status} ${text.slice(0, 80)}`),
        (error) => failures.push(String(error)),
      );
      await delay(50);
    }
  })();
  return {
    failures,
    asked: () => asked,
    async stop() {
      over.abort();
      await loop;
    },
  };
}

const containersOn = (siteId: string) =>
  docker("ps", "--filter", `label=berth.site=${siteId}`, "--format", '{{.Label "berth.agent"}}')
    .split("\n")
    .filter(Boolean);

it("a drained host's site moves to another with no failed request at either, at its commit, and the host can go", async () => {
  const repository = new Repository(plainServer("one"));
  // The other host carries the sample site: this one has more room.
  const made = await launch({ githubUrl: repository.address });
  expect(made).toMatchObject({ status: "RUNNING", hostId: second.id });
  const at = (port: number | string) => {
    const url = new URL(made.url);
    url.port = String(port);
    return url.href;
  };
  const [oldUrl, newUrl] = [at(second.ingressPort), made.url];
  expect((await request(oldUrl)).text).toBe("version one");
  expect((await request(newUrl)).status).toBe(404);
  // Pushed and not deployed: a move is no deployment of it.
  repository.commit({ "server.js": serverSource("two") }, "Second");

  // Both are on this machine, which no host's own address says.
  const hostIds = (await api<{ data: Host[] }>("GET", "/hosts")).body.data
    .filter(({ connected }) => connected)
    .map(({ id }) => id);
  for (const id of hostIds) await api("PATCH", `/hosts/${id}`, { ipv4: "127.0.0.1" });
  const atOld = ask(oldUrl);
  await api("PATCH", `/hosts/${second.id}`, { action: "drain" });
  expect((await api("DELETE", `/hosts/${second.id}`)).status).toBe(409);
  const moved = await until(
    () => site(made.id),
    ({ hostId }) => hostId !== second.id,
  );
  expect(moved).toMatchObject({
    status: "RUNNING",
    currentDeployment: { commit: made.currentDeployment?.commit },
  });
  const atNew = ask(newUrl);
  // Whoever still knows the old address is answered by the new host, which has the request in its log.
  const passedOn = () =>
    api<{ data: unknown[] }>(
      "GET",
      `/sites/${made.id}/requests?path=${encodeURIComponent("/at-the-old-host")}`,
    );
  await until(
    async () => {
      await request(new URL("/at-the-old-host", oldUrl).href);
      return passedOn();
    },
    ({ body }) => body.data.length > 0,
    60_000,
  );
  await atOld.stop();
  expect(atOld.failures).toEqual([]);
  expect(containersOn(made.id).length).toBe(2);

  await until(
    () => api("DELETE", `/hosts/${second.id}`),
    ({ status }) => status === 200,
    200_000,
  );
  expect(containersOn(made.id).length).toBe(1);
  const asked = atNew.asked();
  await until(atNew.asked, (now) => now > asked + 50);
  await atNew.stop();
  expect(atNew.failures).toEqual([]);
  expect((await request(newUrl)).text).toBe("version one");
  expect((await request(oldUrl)).status).toBe(404);
  expect(await hostRecord(second.id)).toBeUndefined();
  for (const id of hostIds) await api("PATCH", `/hosts/${id}`, { ipv4: null });
  await remove(made.id);
});
