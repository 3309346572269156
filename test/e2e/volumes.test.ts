import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { LogLine } from "../../protocol/api/deployments.ts";
import type { SiteMetrics } from "../../protocol/api/running.ts";
import type { SiteVolumes } from "../../protocol/api/site-volumes.ts";
import { steadyLoad } from "./load.ts";
import {
  api,
  launch,
  leftovers,
  redeploy,
  remove,
  Repository,
  request,
  site,
  stateDirectory,
  until,
} from "./service.ts";

/** Without a Dockerfile: what Berth writes runs as a user who is not root. */
const notebook = (version: string) => `
const fs = require("node:fs");
console.log("up", process.getuid());
require("node:http").createServer((q, s) => {
  if (q.url.startsWith("/write")) fs.appendFileSync("/data/notes", q.url.slice(7) + " ");
  s.end(q.url === "/read" ? fs.readFileSync("/data/notes", "utf8") : "version ${version}");
}).listen(process.env.PORT || 3000);
`;
const manifest = JSON.stringify({ name: "notebook", scripts: { start: "node server.js" } });

it("a site's volume and replicas, from the first deployment to the last file", async () => {
  const repository = new Repository({ "package.json": manifest, "server.js": notebook("one") });
  const record = await launch({
    githubUrl: repository.address,
    volumes: [{ name: "notes", mountPath: "/data" }],
  });
  expect([record.status, record.latestDeployment?.error]).toEqual(["RUNNING", null]);
  const { id, url } = record;
  const read = async (path = "/read") => (await request(url + path)).text;
  const volumes = async () => (await api<SiteVolumes>("GET", `/sites/${id}/volumes`)).body.data;
  await read("/write/first");

  // Another version and more of it; from then on swaps lose nothing.
  repository.commit({ "server.js": notebook("two") }, "Second");
  await api("PATCH", `/sites/${id}`, { settings: { replicas: 2 } });
  expect((await redeploy(id)).status).toBe("LIVE");
  expect([await read("/"), await read()]).toEqual(["version two", "first "]);
  const load = steadyLoad(url, 50);
  repository.commit({ "server.js": notebook("three") }, "Third");
  expect((await redeploy(id)).status).toBe("LIVE");
  const { asked } = load.seen;
  await until(
    () => load.seen.asked,
    (now) => now > asked,
  );
  const { failures, texts } = await load.stop();
  expect(failures).toEqual([]);
  expect([...texts.keys()].toSorted()).toContain("version three");
  const lines = async () => (await api<{ data: LogLine[] }>("GET", `/sites/${id}/logs`)).body.data;
  const shown = await until(lines, (list) => new Set(list.map(({ replica }) => replica)).size === 2);
  expect(shown.map(({ replica }) => replica)).toEqual(expect.arrayContaining([1, 2]));
  expect(shown.some(({ text }) => text === "up 0")).toBe(false);

  // The agent ends where it stands.
  await read("/write/second");
  const processes = join(stateDirectory, "processes.json");
  const { agent } = JSON.parse(readFileSync(processes, "utf8")) as { agent: number };
  process.kill(agent, "SIGKILL");
  const listed = await until(volumes, ([first]) => first !== undefined && first.sizeMb !== null);
  expect(listed).toMatchObject([
    { name: "notes", mountPath: "/data", mounted: true, sizeMb: expect.any(Number) },
  ]);
  expect(await read()).toBe("first second ");
  const samples = async () =>
    (await api<Partial<SiteMetrics>>("GET", `/sites/${id}/metrics`)).body.data ?? [];
  const measured = await until(samples, (list) => list.at(-1)?.diskMb != null);
  expect(measured.at(-1)?.diskMb).toBeLessThan(50);

  // Unmounted its data is kept, until it is removed.
  expect((await api("DELETE", `/sites/${id}/volumes/notes`)).status).toBe(409);
  await api("PATCH", `/sites/${id}`, { settings: { volumes: [] } });
  expect((await redeploy(id)).status).toBe("LIVE");
  expect(await volumes()).toMatchObject([{ name: "notes", mountPath: null, mounted: false }]);
  const removal = () => api("DELETE", `/sites/${id}/volumes/notes`);
  await until(removal, ({ status }) => status === 200);
  expect(await volumes()).toEqual([]);

  // What a deployment mounted comes back with it, empty; and goes with the site.
  await api("POST", `/sites/${id}/rollback`, {});
  await until(
    () => site(id),
    ({ status }) => status === "RUNNING",
  );
  expect(await volumes()).toMatchObject([{ name: "notes", mounted: true }]);
  await remove(id);
  expect(leftovers(id)).toEqual([]);
  repository.remove();
});
