import { execFileSync } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import type { Deployment } from "../../protocol/api/deployments.ts";
import { steadyLoad } from "./load.ts";
import {
  api,
  ended,
  launch,
  leftovers,
  plainServer,
  redeploy,
  remove,
  Repository,
  request,
  site,
  until,
} from "./service.ts";

const launched: string[] = [];
afterAll(async () => {
  for (const id of launched) await remove(id);
  for (const id of launched) expect(leftovers(id)).toEqual([]);
});

const answering = (version: string) => ({
  ...plainServer(version),
  "server.js": `require("node:http").createServer((q, s) => s.end("version ${version} of " + process.env.WHO)).listen(process.env.PORT);\n`,
});

const setEnv = (siteId: string, value: string, scope = "runtime") =>
  api("PATCH", `/sites/${siteId}`, { envVariables: [{ key: "WHO", value, scope }] });

async function rollback(siteId: string, deploymentId?: string): Promise<Deployment> {
  const { status, body } = await api<{ deploymentId: string }>(
    "POST",
    `/sites/${siteId}/rollback`,
    deploymentId === undefined ? undefined : { deploymentId },
  );
  expect([status, body]).toMatchObject([202, {}]);
  return ended(body.deploymentId);
}

const deployments = async (siteId: string) =>
  (await api<{ data: Deployment[] }>("GET", `/sites/${siteId}/deployments?limit=100`)).body.data;

const logOf = async ({ id }: Deployment) =>
  (await api<{ data: { text: string }[] }>("GET", `/deployments/${id}/logs`)).body.data
    .map(({ text }) => text)
    .join("\n");

/** Image ids of a site on the engine, and the images its names say. */
function images(siteId: string) {
  const rows = execFileSync(
    "docker",
    ["images", "--no-trunc", "--filter", `label=berth.site=${siteId}`, "--format", "{{.ID}} {{.Tag}}"],
    { encoding: "utf8" },
  )
    .split("\n")
    .filter(Boolean)
    .map((line) => line.split(" "));
  return { ids: new Set(rows.map(([id]) => id)), tags: rows.map(([, tag]) => tag) };
}

async function launchKept(repository: Repository) {
  const record = await launch({ githubUrl: repository.address });
  expect(record).toMatchObject({ status: "RUNNING", latestDeployment: { error: null } });
  launched.push(record.id);
  return record;
}

describe("a rollback", () => {
  it("brings back version and environment without a build and without losing a request", async () => {
    const repository = new Repository(answering("one"));
    const record = await launchKept(repository);
    await setEnv(record.id, "alice");
    const first = await redeploy(record.id);
    repository.commit(answering("two"), "Second");
    await setEnv(record.id, "bob");
    await redeploy(record.id);
    expect((await request(record.url)).text).toBe("version two of bob");

    const load = steadyLoad(record.url, 100);
    const back = await rollback(record.id);
    await delay(4000);
    const { failures, texts } = await load.stop();
    expect(failures).toEqual([]);
    expect([...texts.keys()].sort()).toEqual(["version one of alice", "version two of bob"]);
    expect(back).toMatchObject({
      status: "LIVE",
      trigger: "rollback",
      rollbackOf: first.id,
      imageDigest: first.imageDigest,
      commit: first.commit,
      commitMessage: "First",
      envVersion: first.envVersion,
      durations: { clone: null, build: null, start: expect.any(Number), swap: expect.any(Number) },
    });
    expect(await logOf(back)).toContain(`deployment ${first.number}`);

    // And forth again: what was built is used once more.
    const images0 = images(record.id).ids;
    const forth = await redeploy(record.id);
    expect([forth.status, (await request(record.url)).text]).toEqual(["LIVE", "version two of bob"]);
    expect(images(record.id).ids).toEqual(images0);
  });

  it("that is not healthy leaves what serves", async () => {
    const repository = new Repository({
      ...plainServer("x"),
      "server.js": `if (process.env.WHO === "nobody") process.exit(9);\nrequire("node:http").createServer((q, s) => s.end("for " + process.env.WHO)).listen(process.env.PORT);\n`,
    });
    const record = await launchKept(repository);
    await redeploy(record.id);
    const current = (await site(record.id)).currentDeployment;
    // What the first one needs is gone: its image is another one now, which does not start.
    const [, first] = await deployments(record.id);
    await setEnv(record.id, "nobody");
    const failed = await redeploy(record.id);
    expect(failed).toMatchObject({ status: "FAILED", imageKept: false });
    expect(await site(record.id)).toMatchObject({
      status: "RUNNING",
      currentDeployment: { id: current?.id },
    });
    expect((await request(record.url)).text).toBe("for undefined");
    expect((await rollback(record.id, first?.id)).status).toBe("LIVE");
  });

  it("finds five images after seven deployments, and can go back to the oldest of them", async () => {
    const repository = new Repository(answering("1"));
    const record = await launchKept(repository);
    for (let version = 2; version <= 7; version++) {
      repository.commit(answering(`${version}`), `Version ${version}`);
      expect((await redeploy(record.id)).status).toBe("LIVE");
    }
    const all = await deployments(record.id);
    const kept = all.filter(({ imageKept }) => imageKept);
    expect(kept.map(({ number }) => number)).toEqual([7, 6, 5, 4, 3]);
    const found = await until(
      () => images(record.id),
      ({ tags }) => tags.length === 5,
      20_000,
    );
    expect(new Set(found.tags)).toEqual(new Set(kept.map(({ id }) => id)));
    expect(found.ids.size).toBe(5);
    const gone = await api("POST", `/sites/${record.id}/rollback`, { deploymentId: all[5]?.id });
    expect([gone.status, gone.body["reason"]]).toEqual([409, expect.stringContaining("5 latest")]);
    const oldest = kept.at(-1);
    expect(await rollback(record.id, oldest?.id)).toMatchObject({
      status: "LIVE",
      imageDigest: oldest?.imageDigest,
    });
    expect((await request(record.url)).text).toBe("version 3 of undefined");
  });
});

describe("a deployment of which nothing to build has changed", () => {
  it("uses the image there is; a build variable or rebuild makes another", async () => {
    const repository = new Repository({
      ...answering("one"),
      Dockerfile: `FROM node:24-bookworm-slim\nARG WHO\nWORKDIR /app\nCOPY server.js .\nRUN echo "$WHO" > who\nUSER node\nCMD ["node", "server.js"]\n`,
    });
    const record = await launchKept(repository);
    const [built] = await deployments(record.id);
    await setEnv(record.id, "alice");
    const swapped = await redeploy(record.id);
    expect(await logOf(swapped)).toContain("Nothing to build has changed: using the image of deployment 1.");
    expect(swapped).toMatchObject({
      status: "LIVE",
      imageDigest: built?.imageDigest,
      commit: built?.commit,
      durations: { build: null },
    });
    expect(images(record.id).ids.size).toBe(1);
    expect((await request(record.url)).text).toBe("version one of alice");

    await setEnv(record.id, "bob", "both");
    const rebuilt = await redeploy(record.id);
    expect(await logOf(rebuilt)).not.toContain("Nothing to build");
    expect(rebuilt.imageDigest).not.toBe(built?.imageDigest);

    const { body } = await api<{ deploymentId: string }>("PATCH", `/sites/${record.id}`, {
      action: "deploy",
      rebuild: true,
    });
    const forced = await ended(body.deploymentId);
    expect([forced.status, forced.durations.build]).toEqual(["LIVE", expect.any(Number)]);
  });
});

describe("a restart", () => {
  it("with a newer environment shows in the deployment's record", async () => {
    const repository = new Repository(answering("one"));
    const record = await launchKept(repository);
    await setEnv(record.id, "alice");
    await api("PATCH", `/sites/${record.id}`, { action: "restart" });
    await until(
      async () => (await request(record.url)).text,
      (text) => text === "version one of alice",
    );
    await until(
      async () => (await deployments(record.id))[0]?.envVersion,
      (version) => version === 1,
    );
  });
});
