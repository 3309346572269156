import { beforeEach, expect, it } from "vitest";
import { sql, tick } from "./hosts-service.ts";
import {
  account,
  api,
  bindings,
  deployResult,
  finish,
  greetedAgent,
  readyAgent,
  runningSite,
  site,
  ready,
} from "./service.ts";

const day = 24 * 60 * 60_000;
let key: string;
let host: Awaited<ReturnType<typeof readyAgent>>;

beforeEach(async () => {
  await bindings.DB.prepare("UPDATE hosts SET status = 'REMOVED'").run();
  key = await account();
  host = await readyAgent(1);
  return () => host.close();
});

/** All that was written down was so much earlier. */
async function passes(ms: number): Promise<void> {
  await sql(
    "UPDATE jobs SET created_at = created_at - ?1, leased_at = leased_at - ?1, deadline_at = deadline_at - ?1",
    ms,
  );
  await sql("UPDATE timer_runs SET ran_at = ran_at - ?", ms);
}

const deploy = async (siteId: string): Promise<string> =>
  (await api<{ deploymentId: string }>(key, "PATCH", `/sites/${siteId}`, { action: "deploy" })).body
    .deploymentId;
const deployment = async (id: string) =>
  (await api<{ status: string; error: string | null }>(key, "GET", `/deployments/${id}`)).body;

it("a control plane that was away for a day fails nothing: what a host did meanwhile counts, what waited is done", async () => {
  const { siteId } = await runningSite(key, host);
  host.send(ready(1));
  const { siteId: otherId } = await runningSite(key, host);
  host.send(ready(1));
  const worked = await deploy(siteId);
  const { job, attempt } = await host.next("job");
  const waited = await deploy(otherId);
  await tick();

  await passes(day);
  await tick();
  expect(await deployment(worked)).toMatchObject({ status: "BUILDING" });
  expect(await deployment(waited)).toMatchObject({ status: "QUEUED" });

  host.close();
  const back = await greetedAgent({ finished: [{ jobId: job.id, attempt }] }, host.token);
  await finish(back, job, attempt, deployResult);
  expect(await deployment(worked)).toMatchObject({ status: "LIVE", error: null });
  expect(await site(key, siteId)).toMatchObject({ status: "RUNNING", currentDeployment: { id: worked } });
  back.send(ready(1));
  const next = await back.next("job");
  expect(next.job.args).toMatchObject({ deploymentId: waited });
  await finish(back, next.job, next.attempt, deployResult);
  expect(await deployment(waited)).toMatchObject({ status: "LIVE" });
  back.close();
});

it("a host that stays away ends its job all the same, once its time is over", async () => {
  const { siteId } = await runningSite(key, host);
  host.send(ready(1));
  const worked = await deploy(siteId);
  await host.next("job");
  await tick();
  await passes(day);
  await tick();
  // The timer runs, and the job's own time passes.
  for (let minutes = 0; minutes < 60; minutes += 2) {
    await passes(2 * 60_000);
    await tick();
  }
  expect(await deployment(worked)).toMatchObject({ status: "FAILED" });
});
