import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { agentIdOf } from "../../scripts/lib/engine-objects.ts";
import {
  api,
  createSite,
  hostToken,
  launch,
  leftovers,
  local,
  pay,
  plainServer,
  redeploy,
  remove,
  Repository,
  request,
  serverSource,
  settled,
  site,
  stateDirectory,
  until,
} from "./service.ts";

/** The process ids of the embedded service's parts, as its supervisor keeps them. */
const processIds = () =>
  JSON.parse(readFileSync(join(stateDirectory, "processes.json"), "utf8")) as Record<string, number>;

const docker = (...args: string[]): string[] =>
  execFileSync("docker", args, { encoding: "utf8" }).split("\n").filter(Boolean);

const deploymentsOf = async (siteId: string) =>
  (await api<{ data: { id: string }[] }>("GET", `/sites/${siteId}/deployments`)).body.data.map(
    ({ id }) => id,
  );

const slowBuild = (version: string) => ({
  ...plainServer(version),
  Dockerfile: `FROM node:24-bookworm-slim\nWORKDIR /app\nCOPY server.js .\nRUN sleep 6\nUSER node\nCMD ["node", "server.js"]\n`,
});

it("kill -9 of the agent in mid build ends in RUNNING by itself, once", async () => {
  const repository = new Repository(slowBuild("one"));
  const { siteId, invoiceToken } = await createSite({ githubUrl: repository.address });
  await pay(invoiceToken);
  const building = await until(
    async () => (await api<{ data: { id: string }[] }>("GET", `/sites/${siteId}/deployments`)).body.data[0],
    (deployment) => deployment !== undefined,
  );
  await until(
    async () =>
      (await api<{ data: { text: string }[] }>("GET", `/deployments/${building?.id}/logs`)).body.data,
    (lines) => lines.some(({ text }) => text.includes("sleep 6")),
  );
  process.kill(processIds()["agent"] ?? 0, "SIGKILL");
  const record = await settled(siteId);
  expect(record).toMatchObject({ status: "RUNNING", latestDeployment: { id: building?.id, status: "LIVE" } });
  expect((await request(record.url)).text).toBe("version one");
  expect(leftovers(siteId).filter((name) => name.startsWith("container"))).toHaveLength(1);
  await remove(siteId);
  expect(leftovers(siteId)).toEqual([]);
});

it("kill -9 of workerd between payment and deployment ends in RUNNING by itself, and the site in service never stops", async () => {
  const other = await launch({ githubUrl: new Repository(plainServer("other")).address });
  const repository = new Repository(plainServer("one"));
  const { siteId, invoiceToken } = await createSite({ githubUrl: repository.address });
  const workerd = processIds()["control-plane"] ?? 0;
  expect(readFileSync(`/proc/${workerd}/cmdline`, "utf8")).toMatch(/^[^\0]*\/workerd\0/);
  expect((await pay(invoiceToken)).status).toBe(200);
  process.kill(workerd, "SIGKILL");
  expect((await request(other.url)).text).toBe("version other");
  await until(
    () =>
      request(`${local.siteUrl}/health`).then(
        ({ status }) => status,
        () => 0,
      ),
    (status) => status === 200,
    30_000,
  );
  const record = await settled(siteId);
  expect(record.status).toBe("RUNNING");
  expect((await request(record.url)).text).toBe("version one");
  repository.commit({ "server.js": serverSource("two") }, "Second");
  expect((await redeploy(siteId)).status).toBe("LIVE");
  expect((await request(record.url)).text).toBe("version two");
  await remove(siteId);
  await remove(other.id);
});

it("a reboot of the host: what ran runs again by itself, and what was stopped stays so", async () => {
  const runs = await launch({ githubUrl: new Repository(plainServer("runs")).address });
  const stopped = await launch({ githubUrl: new Repository(plainServer("stopped")).address });
  await api("PATCH", `/sites/${stopped.id}`, { action: "stop" });
  await until(
    () => site(stopped.id),
    ({ status }) => status === "STOPPED",
  );
  const agentId = agentIdOf(hostToken);
  const running = docker("ps", "--quiet", "--filter", `label=berth.agent=${agentId}`);
  const ingress = docker("ps", "--quiet", "--filter", `label=berth.ingress=${agentId}`);
  const [deployed] = await deploymentsOf(runs.id);
  process.kill(processIds()["agent"] ?? 0, "SIGKILL");
  // Not started again by the engine, as what is killed by name is not.
  docker("kill", ...running, ...ingress);
  const answers = (url: string) =>
    request(url).then(
      ({ status, text }) => `${status} ${text}`,
      () => "",
    );
  await until(
    () => answers(runs.url),
    (answer) => answer === "200 version runs",
    60_000,
  );
  expect(await answers(stopped.url)).toMatch(/^503 /);
  expect((await site(runs.id)).status).toBe("RUNNING");
  expect((await site(stopped.id)).status).toBe("STOPPED");
  expect(await deploymentsOf(runs.id)).toEqual([deployed]);
  // The service's sample and whatever else ran.
  await until(
    () => docker("ps", "--quiet", "--filter", `label=berth.agent=${agentId}`).toSorted(),
    (now) => running.every((id) => now.includes(id)),
    60_000,
  );
  await remove(runs.id);
  await remove(stopped.id);
});
