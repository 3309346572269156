import { randomUUID } from "node:crypto";
import { afterAll, describe, expect, it } from "vitest";
import {
  api,
  createSite,
  ended,
  gitHost,
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
  until,
} from "./service.ts";

const launched: string[] = [];
async function launchKept(input: Record<string, unknown>) {
  const record = await launch(input);
  launched.push(record.id);
  return record;
}

afterAll(async () => {
  for (const id of launched) await remove(id);
  for (const id of launched) expect(leftovers(id)).toEqual([]);
});

describe("the sample repositories", () => {
  it("the one npm start deployed runs and answers through the ingress", async () => {
    expect((await site(local.sampleSite.id)).status).toBe("RUNNING");
    expect((await request(local.sampleSite.url)).status).toBe(200);
  });

  it.each(["hello-docker", "notes-app", "static-page"])("%s deploys and answers over HTTP", async (name) => {
    const { githubUrl } = await site(local.sampleSite.id);
    const record = await launchKept({ githubUrl: githubUrl?.replace(/[^/]+\.git$/, `${name}.git`) });
    expect(record).toMatchObject({ status: "RUNNING", latestDeployment: { status: "LIVE", error: null } });
    const answer = await request(record.url);
    expect([answer.status, answer.text.length > 0]).toEqual([200, true]);
  });
});

describe("a deployment", () => {
  it("shows its commit, its phases and its log", async () => {
    const { Dockerfile = "", ...files } = plainServer("one");
    // New each time: what is in the engine's cache writes nothing.
    const step = randomUUID();
    const steps = Dockerfile.replace("COPY", `RUN printf 'FIRST %s\\n' ${step} && sleep 0.2\nCOPY`);
    const repository = new Repository({ ...files, Dockerfile: steps });
    const record = await launchKept({ githubUrl: repository.address });
    const { body } = await api("GET", `/deployments/${record.latestDeployment?.id}`);
    expect(body).toMatchObject({
      status: "LIVE",
      trigger: "payment",
      number: 1,
      commit: expect.stringMatching(/^[0-9a-f]{40}$/),
      commitMessage: "First",
      imageDigest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      durations: {
        clone: expect.any(Number),
        build: expect.any(Number),
        start: expect.any(Number),
        swap: expect.any(Number),
      },
    });
    const log = await api<{ data: { text: string }[] }>(
      "GET",
      `/deployments/${record.latestDeployment?.id}/logs`,
    );
    // Each step is said when it begins, so what it writes follows it.
    expect(log.body.data.map(({ text }) => text).join("\n")).toMatch(
      new RegExp(`\\] RUN [^]*\\nFIRST ${step}\\n[^]*\\] COPY server\\.js`),
    );
  });

  it("leaves what browsers have kept of a file valid that it does not change, and of no other", async () => {
    const files = { "index.html": "<h1>One</h1>", "app.css": "h1 { color: red }" };
    const repository = new Repository(files);
    const { id, url } = await launchKept({ githubUrl: repository.address });
    const tags = async () => {
      const answers = await Promise.all(Object.keys(files).map((name) => request(`${url}/${name}`)));
      return answers.map(({ headers }) => headers["etag"]);
    };
    const [page, style] = await tags();
    expect(page).toMatch(/^"\w+"$/);
    // Of the same size.
    repository.commit({ "index.html": "<h1>Two</h1>" }, "Second");
    expect((await redeploy(id)).status).toBe("LIVE");
    const [newPage, newStyle] = await tags();
    expect(newStyle).toBe(style);
    expect(newPage).not.toBe(page);
    expect((await request(`${url}/app.css`, { headers: { "If-None-Match": style ?? "" } })).status).toBe(304);
  });

  it("by webhook brings the newest commit, and stop, start and restart do what they say", async () => {
    const repository = new Repository(plainServer("one"));
    const record = await launchKept({ githubUrl: repository.address });
    expect((await request(record.url)).text).toBe("version one");
    const commit = repository.commit({ "server.js": serverSource("two") }, "Second");
    const { body: webhook } = await api<{ url: string }>("GET", `/sites/${record.id}/webhook`);
    const fired = await request(webhook.url, { method: "POST" });
    expect(fired.status).toBe(202);
    const deployment = await ended((JSON.parse(fired.text) as { deploymentId: string }).deploymentId);
    expect(deployment).toMatchObject({ status: "LIVE", trigger: "webhook", commit });
    expect((await request(record.url)).text).toBe("version two");

    await api("PATCH", `/sites/${record.id}`, { action: "stop" });
    await until(
      () => site(record.id),
      ({ status }) => status === "STOPPED",
    );
    expect((await request(record.url)).status).toBe(503);
    await api("PATCH", `/sites/${record.id}`, { action: "start" });
    await until(
      () => site(record.id),
      ({ status }) => status === "RUNNING",
    );
    expect((await request(record.url)).text).toBe("version two");
    expect((await api("PATCH", `/sites/${record.id}`, { action: "restart" })).status).toBe(202);
    await until(
      async () => (await request(record.url)).text,
      (text) => text === "version two",
    );
  });

  it("runs a Procfile's release command before it serves, with its variables, and fails with it", async () => {
    const web = "web: node server.js\n";
    const repository = new Repository({
      "package.json": JSON.stringify({
        name: "app",
        private: true,
        scripts: { build: "echo builds $BERTH_COMMIT" },
      }),
      "server.js": serverSource("one"),
      Procfile: `release: echo migrates $STAGE of $BERTH_SITE_URL at $BERTH_COMMIT\n${web}`,
    });
    const logOf = async (id: string) => {
      const { body } = await api<{ data: { text: string }[] }>("GET", `/deployments/${id}/logs`);
      return body.data.map(({ text }) => text);
    };
    const record = await launchKept({ githubUrl: repository.address });
    const first = `of ${record.url} at ${record.currentDeployment?.commit}`;
    const log = await logOf(record.latestDeployment?.id ?? "");
    expect(log).toContain(`migrates ${first}`);
    expect(log).toContain(`builds ${record.currentDeployment?.commit}`);
    const envVariables = [{ key: "STAGE", value: "live", scope: "runtime" }];
    await api("PATCH", `/sites/${record.id}`, { envVariables });
    const again = await redeploy(record.id);
    expect(again).toMatchObject({ status: "LIVE", durations: { build: null } });
    expect(await logOf(again.id)).toContain(`migrates live ${first}`);

    repository.commit(
      { "server.js": serverSource("two"), Procfile: `release: echo no table; exit 3\n${web}` },
      "Second",
    );
    const failed = await redeploy(record.id);
    expect(failed).toMatchObject({
      status: "FAILED",
      error: "The release command failed: exited with 3: its log says what happened.",
    });
    expect(await logOf(failed.id)).toContain("no table");
    expect(await site(record.id)).toMatchObject({ status: "RUNNING" });
    expect((await request(record.url)).text).toBe("version one");

    const settings = { releaseCommand: "echo migrates otherwise" };
    await api("PATCH", `/sites/${record.id}`, { settings });
    const other = await redeploy(record.id);
    expect(other).toMatchObject({ status: "LIVE" });
    expect(await logOf(other.id)).toContain("migrates otherwise");
    expect((await request(record.url)).text).toBe("version two");
  });

  it("of a deleted site leaves no container, image or route", async () => {
    const repository = new Repository(plainServer("one"));
    const record = await launch({ githubUrl: repository.address });
    await remove(record.id);
    expect(leftovers(record.id)).toEqual([]);
    expect((await request(record.url)).status).toBe(404);
  });
});

describe("a broken deployment", () => {
  const cases: [string, Record<string, string>, Record<string, unknown>, RegExp][] = [
    [
      "a Dockerfile that fails",
      { Dockerfile: "FROM node:24-bookworm-slim\nRUN echo no compiler; exit 7\n" },
      {},
      /"echo no compiler; exit 7" exited with code 7\. Its last lines: no compiler$/,
    ],
    [
      "an app that exits",
      { ...plainServer("x"), "server.js": "console.log('no database'); process.exit(3);\n" },
      {},
      /exited with code 3.*no database/s,
    ],
    [
      "an app on another port",
      plainServer("x"),
      { port: 4567, startCommand: "env PORT=8123 node server.js" },
      /4567.*8123/s,
    ],
    ["a repository nothing can be detected in", { "notes.txt": "hello" }, {}, /Dockerfile/],
  ];

  it.each(cases)(
    "by %s ends FAILED with a sentence that says why, and leaves nothing",
    async (_name, files, settings, reason) => {
      const repository = new Repository(files);
      const record = await launch({ githubUrl: repository.address, ...settings });
      expect(record.status).toBe("FAILED");
      expect(record.latestDeployment?.error).toMatch(reason);
      expect(leftovers(record.id)).toEqual([]);
      await remove(record.id);
    },
  );

  it.each([
    [
      "a repository that does not exist",
      { githubUrl: `${gitHost}/nobody/nothing.git` },
      /does not exist|not found/i,
    ],
    ["a branch that does not exist", { branch: "nope" }, /nope/],
  ])("by %s ends FAILED with a sentence that says why", async (_name, settings, reason) => {
    const repository = new Repository(plainServer("one"));
    const record = await launch({ githubUrl: repository.address, ...settings });
    expect(record.status).toBe("FAILED");
    expect(record.latestDeployment?.error).toMatch(reason);
    expect(leftovers(record.id)).toEqual([]);
    await remove(record.id);
  });

  it("leaves the old version serving, and a good one after it takes over", async () => {
    const repository = new Repository(plainServer("one"));
    const record = await launchKept({ githubUrl: repository.address });
    repository.commit({ "server.js": "process.exit(1);\n" }, "Broken");
    const broken = await redeploy(record.id);
    expect(broken).toMatchObject({ status: "FAILED", error: expect.stringContaining("exited") });
    expect(await site(record.id)).toMatchObject({
      status: "RUNNING",
      latestDeployment: { status: "FAILED" },
    });
    expect((await request(record.url)).text).toBe("version one");
    repository.commit({ "server.js": serverSource("three") }, "Mended");
    expect((await redeploy(record.id)).status).toBe("LIVE");
    expect((await request(record.url)).text).toBe("version three");
  });
});

describe("nothing is deployed", () => {
  it("before the invoice is paid", async () => {
    const repository = new Repository(plainServer("one"));
    const { siteId, invoiceToken } = await createSite({ githubUrl: repository.address });
    launched.push(siteId);
    expect((await api("PATCH", `/sites/${siteId}`, { action: "deploy" })).status).toBe(402);
    expect(leftovers(siteId)).toEqual([]);
    await pay(invoiceToken);
    expect((await settled(siteId)).status).toBe("RUNNING");
  });
});
