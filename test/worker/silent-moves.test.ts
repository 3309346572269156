import { beforeEach, describe, expect, it } from "vitest";
import { clearAway, foundOffline, hostFor, sql, tick } from "./hosts-service.ts";
import { account, deployResult, finish, readyAgent, runningSite, site, ready } from "./service.ts";

beforeEach(clearAway);

const drain = async (id: string) => {
  await sql("UPDATE hosts SET status = 'DRAINING' WHERE id = ?", id);
  await tick();
};

describe("a host that is drained", () => {
  it("moves a site elsewhere whose new host falls silent before it has taken it", async () => {
    const key = await account();
    const old = await hostFor(2);
    const { siteId } = await runningSite(key, old);
    const dead = await hostFor(3);
    dead.send(ready(0));
    await drain(old.hostId);
    expect(await site(key, siteId)).toMatchObject({ status: "DEPLOYING", hostId: old.hostId });
    const fresh = await hostFor(2);
    expect([dead.waiting(), fresh.waiting()]).toEqual([[], []]);
    dead.close();
    await foundOffline(dead.hostId);
    await tick();
    const { job, attempt } = await fresh.next("job");
    expect(job).toMatchObject({ kind: "site.deploy", args: { run: { siteId } } });
    await finish(fresh, job, attempt, deployResult);
    expect(await site(key, siteId)).toMatchObject({ hostId: fresh.hostId, status: "RUNNING" });
    old.close();
    fresh.close();
  });

  it("keeps a site whose new host falls silent at its work, moves the others, and that one once nothing of it is left there", async () => {
    const key = await account();
    const old = await hostFor(2);
    const ids = [(await runningSite(key, old)).siteId, (await runningSite(key, old)).siteId];
    const silent = await hostFor(3);
    await drain(old.hostId);
    const lost = await silent.next("job");
    const fresh = await hostFor(2);
    silent.close();
    await foundOffline(silent.hostId);
    await tick();
    // It may only have lost its link for a moment.
    expect([(await site(key, ids[0]!)).status, fresh.waiting()]).toEqual(["DEPLOYING", []]);
    await sql("UPDATE hosts SET offline_since = offline_since - 60001 WHERE id = ?", silent.hostId);
    await tick();
    expect(await site(key, ids[0]!)).toMatchObject({
      hostId: old.hostId,
      status: "RUNNING",
      latestDeployment: { status: "FAILED", error: expect.stringContaining("stopped responding") },
    });
    const other = await fresh.next("job");
    expect(other.job.args).toMatchObject({ run: { siteId: ids[1] } });
    await finish(fresh, other.job, other.attempt, deployResult);
    // Whoever is silent may run it: not on a third one as well.
    await sql("UPDATE deployments SET finished_at = 1 WHERE site_id = ?", ids[0]!);
    await tick();
    expect(fresh.waiting()).toEqual([]);

    const back = await readyAgent(10, silent.token);
    back.send({ type: "done", jobId: lost.job.id, attempt: lost.attempt, result: deployResult });
    await back.next("ack");
    expect(await site(key, ids[0]!)).toMatchObject({ hostId: old.hostId, status: "RUNNING" });
    await tick();
    const evict = await back.next("job");
    expect(evict.job).toMatchObject({ kind: "site.evict", args: { siteId: ids[0] } });
    await finish(back, evict.job, evict.attempt);
    await tick();
    const again = await Promise.race([back.next("job"), fresh.next("job")]);
    expect(again.job).toMatchObject({ kind: "site.deploy", args: { run: { siteId: ids[0] } } });
    old.close();
    back.close();
    fresh.close();
  });
});
