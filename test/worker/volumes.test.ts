import { beforeEach, describe, expect, it } from "vitest";
import type { Answer } from "../../protocol/agent/running.ts";
import type { Job } from "../../protocol/agent/jobs.ts";
import type { SiteVolumes } from "../../protocol/api/site-volumes.ts";
import { drain, foundOffline, tick } from "./hosts-service.ts";
import {
  account,
  api,
  bindings,
  createSite,
  deployResult,
  fail,
  finish,
  finishNext,
  operator,
  readyAgent,
  runningSite,
  site,
  type Agent,
} from "./service.ts";

const data = { name: "data", mountPath: "/data" };
const uploads = { name: "uploads", mountPath: "/srv/uploads" };

let key: string;
let host: Awaited<ReturnType<typeof readyAgent>>;

// Hosts of earlier tests are out of the way.
beforeEach(async () => {
  await bindings.DB.prepare("UPDATE hosts SET status = 'REMOVED'").run();
  key = await account();
  host = await readyAgent();
  return () => host.close();
});

const patch = (siteId: string, body: object) => api(key, "PATCH", `/sites/${siteId}`, body);
const settings = (siteId: string, changes: object) => patch(siteId, { settings: changes });
const removed = (siteId: string, name: string) => api(key, "DELETE", `/sites/${siteId}/volumes/${name}`);
const runOf = (job: Job) => (job as Job<"site.deploy">).args.run;

async function deploy(siteId: string): Promise<Job<"site.deploy">> {
  await patch(siteId, { action: "deploy" });
  const job = await finishNext(host, deployResult);
  return job as Job<"site.deploy">;
}

/** Answers the next question. */
async function answer(on: Agent, text: Answer) {
  const { requestId, question } = await on.next("ask");
  on.send({ type: "answer", requestId, answer: text, last: true });
  return question;
}

async function goOffline() {
  host.close();
  await foundOffline(host.hostId);
}

const nothingKnown: Answer = { kind: "volumes", volumes: [] };

async function volumesOf(siteId: string, known: Answer = nothingKnown) {
  const asking = api<SiteVolumes>(key, "GET", `/sites/${siteId}/volumes`);
  const question = await answer(host, known);
  return { question, ...(await asking).body };
}

describe("volumes and replicas", () => {
  it("are set at creation or later, shown, and go with the next deployment to its host", async () => {
    const { siteId } = await runningSite(key, host, { volumes: [data], replicas: 2 });
    expect(await site(key, siteId)).toMatchObject({ volumes: [data], replicas: 2 });
    expect((await settings(siteId, { volumes: [data, uploads], replicas: 3 })).body).toMatchObject({
      volumes: [data, uploads],
      replicas: 3,
    });
    // What runs is started again as it was.
    await patch(siteId, { action: "restart" });
    const restart = await host.next("job");
    const limits = { diskGb: 2 };
    // What the host has had for it must not begin anew there.
    expect(runOf(restart.job)).toMatchObject({ replicas: 2, volumes: [data], heldVolumes: ["data"], limits });
    await finish(host, restart.job, restart.attempt);
    const run = { replicas: 3, volumes: [data, uploads], heldVolumes: ["data"] };
    expect(runOf(await deploy(siteId))).toMatchObject(run);
  });

  it("come back with a rollback, and are none for what was deployed before there were any", async () => {
    const { siteId } = await runningSite(key, host);
    const first = (await site(key, siteId)).currentDeployment?.id ?? "";
    await bindings.DB.prepare(
      "UPDATE deployments SET run = json_remove(run, '$.replicas', '$.volumes') WHERE id = ?",
    )
      .bind(first)
      .run();
    await settings(siteId, { volumes: [data], replicas: 2 });
    await deploy(siteId);
    await api(key, "POST", `/sites/${siteId}/rollback`, {});
    const { job, attempt } = await host.next("job");
    expect(runOf(job)).toMatchObject({ replicas: 1, volumes: [] });
    await finish(host, job, attempt, deployResult);
    await api(key, "POST", `/sites/${siteId}/rollback`, {});
    const again = await host.next("job");
    expect(runOf(again.job)).toMatchObject({ replicas: 2, volumes: [data] });
    await finish(host, again.job, again.attempt, deployResult);
  });

  it.each([
    [{ volumes: [{ ...data, mountPath: "data" }] }],
    [{ volumes: [{ ...data, mountPath: "/" }] }],
    [{ volumes: [{ ...data, mountPath: "/etc/app" }] }],
    [{ volumes: [{ ...data, mountPath: "/data/../proc" }] }],
    [{ volumes: [{ ...data, name: "../data" }] }],
    [{ volumes: [data, { ...uploads, name: "data" }] }],
    [{ volumes: [data, { ...data, name: "other" }] }],
    [{ volumes: Array.from({ length: 6 }, (_, n) => ({ name: `v${n}`, mountPath: `/v${n}` })) }],
    [{ replicas: 0 }],
    [{ replicas: 11 }],
    [{ replicas: 1.5 }],
    // The smallest pack has 256 MB.
    [{ replicas: 5 }],
  ])("that cannot be are refused, at creation as well: %j", async (wrong) => {
    const { siteId } = await createSite(key);
    const answers = [
      await settings(siteId, wrong),
      await api(key, "POST", "/sites", {
        name: "other",
        deployType: "image",
        image: "nginx",
        ...wrong,
      }),
    ];
    for (const { status, body } of answers) expect([status, body["error"]]).toEqual([400, "invalid_request"]);
    expect(await site(key, siteId)).toMatchObject({ volumes: [], replicas: 1 });
  });
});

describe("the list of volumes", () => {
  it("says which are mounted, where, and what they hold, as the host knows", async () => {
    const { siteId } = await runningSite(key, host, { volumes: [data] });
    await settings(siteId, { volumes: [uploads] });
    const known: Answer = { kind: "volumes", volumes: [{ name: "data", sizeMb: 12.5 }] };
    expect(await volumesOf(siteId, known)).toMatchObject({
      question: { kind: "volumes", siteId },
      data: [
        { ...data, mounted: true, sizeMb: 12.5 },
        { ...uploads, mounted: false, sizeMb: null },
      ],
    });
    await deploy(siteId);
    expect((await volumesOf(siteId, known)).data).toMatchObject([
      { name: "data", mountPath: null, mounted: false, sizeMb: 12.5 },
      { ...uploads, mounted: true, sizeMb: null },
    ]);
  });

  it("comes without sizes while the host is offline, and is its owner's", async () => {
    const { siteId } = await runningSite(key, host, { volumes: [data] });
    await goOffline();
    const { status, body } = await api<SiteVolumes>(key, "GET", `/sites/${siteId}/volumes`);
    expect([status, body.data]).toMatchObject([200, [{ ...data, mounted: true, sizeMb: null }]]);
    const stranger = await account();
    expect((await api(stranger, "GET", `/sites/${siteId}/volumes`)).status).toBe(403);
    expect((await api(stranger, "DELETE", `/sites/${siteId}/volumes/data`)).status).toBe(403);
    host = await readyAgent();
  });
});

describe("a volume that is removed", () => {
  it("must not be set, mounted or about to be used; then its host removes the data, and it is gone", async () => {
    const { siteId } = await runningSite(key, host, { volumes: [data] });
    const refused = (reason: RegExp) => ({ status: 409, body: { reason: expect.stringMatching(reason) } });
    expect(await removed(siteId, "data")).toMatchObject(refused(/settings mount/));
    await settings(siteId, { volumes: [] });
    expect(await removed(siteId, "data")).toMatchObject(refused(/version in service uses/));
    await patch(siteId, { action: "deploy" });
    const { job, attempt } = await host.next("job");
    await patch(siteId, { action: "deploy" });
    await finish(host, job, attempt, deployResult);
    expect(await removed(siteId, "data")).toMatchObject(refused(/in progress/));
    await finishNext(host, deployResult);

    const stillUsed = removed(siteId, "data");
    await answer(host, { kind: "refused", error: "A container still uses this volume." });
    expect(await stillUsed).toMatchObject(refused(/still uses/));
    const gone = removed(siteId, "data");
    expect(await answer(host, { kind: "removeVolume" })).toEqual({
      kind: "removeVolume",
      siteId,
      name: "data",
    });
    expect(await gone).toMatchObject({ status: 200, body: { name: "data", removed: true } });
    expect((await api(key, "GET", `/sites/${siteId}/volumes`)).body).toEqual({ data: [] });
    expect((await removed(siteId, "data")).status).toBe(404);
  });

  it("is gone also while its host is told of the site's names", async () => {
    const { siteId } = await runningSite(key, host, { volumes: [data] });
    await settings(siteId, { volumes: [] });
    await deploy(siteId);
    await settings(siteId, { ingress: { headers: { "X-Told": "1" } } });
    const route = await host.next("job");
    expect(route.job.kind).toBe("site.route");
    const gone = removed(siteId, "data");
    await answer(host, { kind: "removeVolume" });
    expect(await gone).toMatchObject({ status: 200, body: { removed: true } });
    expect((await api(key, "GET", `/sites/${siteId}/volumes`)).body).toEqual({ data: [] });
    await finish(host, route.job, route.attempt);
  });

  it("stays on the list while its host is offline", async () => {
    const { siteId } = await runningSite(key, host, { volumes: [data] });
    await settings(siteId, { volumes: [] });
    await deploy(siteId);
    await goOffline();
    expect((await removed(siteId, "data")).status).toBe(409);
    expect((await api<SiteVolumes>(key, "GET", `/sites/${siteId}/volumes`)).body.data).toHaveLength(1);
    host = await readyAgent();
  });

  it("is on the list again when a rollback brings it back", async () => {
    const { siteId } = await runningSite(key, host, { volumes: [data] });
    await settings(siteId, { volumes: [] });
    await deploy(siteId);
    const gone = removed(siteId, "data");
    await answer(host, { kind: "removeVolume" });
    await gone;
    await api(key, "POST", `/sites/${siteId}/rollback`, {});
    await finishNext(host, deployResult);
    expect((await volumesOf(siteId)).data).toMatchObject([{ ...data, mounted: true, sizeMb: null }]);
  });

  it("of a site that never had a host needs none, and goes with a deleted site", async () => {
    const { siteId } = await createSite(key, { volumes: [data, uploads] });
    await settings(siteId, { volumes: [data] });
    expect((await removed(siteId, "uploads")).status).toBe(200);
    await api(key, "DELETE", `/sites/${siteId}`);
    const { results } = await bindings.DB.prepare("SELECT * FROM site_volumes WHERE site_id = ?")
      .bind(siteId)
      .all();
    expect(results).toEqual([]);
  });
});

describe("a host that is drained", () => {
  const remove = async (query = "") => api(await operator(), "DELETE", `/hosts/${host.hostId}${query}`);

  it("keeps sites with volumes, says so, and gives the others away", async () => {
    const [kept, moves] = [await runningSite(key, host, { volumes: [data] }), await runningSite(key, host)];
    const other = await readyAgent();
    const drained = await drain(host);
    expect(drained).toMatchObject({
      volumeSiteCount: 1,
      notice: expect.stringMatching(/^1 site .* cannot move/),
    });
    const { job, attempt } = await other.next("job");
    expect(runOf(job).siteId).toBe(moves.siteId);
    await finish(other, job, attempt, deployResult);
    await tick();
    expect([other.waiting(), (await site(key, kept.siteId)).hostId]).toEqual([[], host.hostId]);
    expect((await remove()).body["reason"]).toMatch(/cannot move because the data is on this host/);
    // It can be deployed there all the same.
    expect(runOf(await deploy(kept.siteId)).siteId).toBe(kept.siteId);
    other.close();
  });

  it("keeps the data of a site that does not run", async () => {
    const { siteId } = await runningSite(key, host, { volumes: [data] });
    await bindings.DB.prepare("UPDATE sites SET status = 'FAILED', serving = 0 WHERE id = ?")
      .bind(siteId)
      .run();
    await drain(host);
    await tick();
    expect((await site(key, siteId)).hostId).toBe(host.hostId);
    expect(host.waiting()).toEqual([]);
  });

  it("and dead is not removed by force before the loss of data is agreed to", async () => {
    const { siteId } = await runningSite(key, host, { volumes: [data] });
    const { name } = await site(key, siteId);
    await goOffline();
    const refused = await remove("?force=1");
    expect([refused.status, refused.body["reason"]]).toEqual([409, expect.stringContaining(`(${name})`)]);
    expect((await site(key, siteId)).hostId).toBe(host.hostId);
    expect((await remove("?force=1&loseVolumes=1")).status).toBe(200);
    expect(await site(key, siteId)).toMatchObject({ hostId: null, status: "DEPLOYING", volumes: [data] });
    host = await readyAgent();
    const { job, attempt } = await host.next("job");
    // Elsewhere it begins empty, as was agreed to.
    expect(runOf(job)).toMatchObject({ volumes: [data] });
    expect(runOf(job)).not.toHaveProperty("heldVolumes");
    await fail(host, job, attempt);
  });
});
