import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Job, JobArgs, JobKind, KeptDeployment, RunSpec } from "../../protocol/agent/jobs.ts";
import { releaseLabel } from "../../agent/docker/specs.ts";
import { formatId } from "../../protocol/ids.ts";
import {
  after,
  appPort,
  closeMachines,
  Machine,
  openMachines,
  throughAllCrashes,
} from "../support/crash-points.ts";
import { deployArgs } from "../support/deploy-args.ts";
import { exitsSoon } from "../support/memory-engine.ts";
import { runSpec } from "../support/run-spec.ts";

beforeAll(openMachines);
afterAll(closeMachines);

type Deploy = JobArgs<"site.deploy">;
const { siteId, accountId, hostnames } = runSpec();
const run = (changes: Partial<RunSpec> = {}): RunSpec => runSpec({ port: appPort(), ...changes });
const deploymentOf = (number: number) => formatId("deployment", number, new Uint8Array(10));
const jobOf = <K extends JobKind>(kind: K, args: JobArgs<K>, number = 9) =>
  ({ id: formatId("job", number, new Uint8Array(10)), kind, args }) as unknown as Job;

const deploy = (number: number, changes: Partial<Deploy> = {}) =>
  jobOf(
    "site.deploy",
    deployArgs({
      run: run(),
      deploymentId: deploymentOf(number),
      source: { type: "dockerfile", text: `FROM scratch\n# ${number}` },
      ...changes,
    }),
    number,
  );

/** A machine on which two versions of a site were deployed one after the other; answers what is kept of them. */
async function deployed(given: Partial<RunSpec> = {}): Promise<{ machine: Machine; kept: KeptDeployment[] }> {
  const machine = new Machine();
  const kept: KeptDeployment[] = [];
  for (const number of [1, 2]) {
    const agent = await machine.agent();
    const made = (await agent.does(deploy(number, { run: run(given), kept: [...kept] }))) as KeptDeployment;
    kept.unshift({ ...made, deploymentId: deploymentOf(number), number });
    agent.close();
  }
  return { machine, kept };
}

/** An agent that does this job, or ends before that step of it. */
async function doneBy(machine: Machine, job: Job, endsAt?: number) {
  const agent = await machine.agent({ ...(endsAt !== undefined && { endsAt }) });
  const result = await agent.does(job);
  expect(result === "ended").toBe(endsAt !== undefined);
  agent.close();
  return agent;
}

const volumes = [{ name: "data", mountPath: "/data" }];
const env = [{ key: "A", value: "new", scope: "runtime", secret: false } as const];
const rollback = (kept: KeptDeployment[], given: Partial<RunSpec>) =>
  deploy(3, { run: run(given), source: { type: "kept", deploymentId: deploymentOf(1) }, kept });
const stop = (notice?: JobArgs<"site.stop">["notice"]) =>
  jobOf("site.stop", { siteId, hostnames, ...(notice && { notice }) });
const again = (kind: "site.start" | "site.restart", given: Partial<RunSpec> = {}) =>
  jobOf(kind, { run: run(given), deploymentId: deploymentOf(2) });

const kinds: [string, Partial<RunSpec>, "throughout" | "between agents"][] = [
  ["", {}, "throughout"],
  [" of two replicas", { replicas: 2 }, "throughout"],
  [" whose volume changes hands", { volumes }, "between agents"],
];

describe("an agent may end before any step of", () => {
  it("a first deployment, also one that moves a site to this host", async () => {
    await throughAllCrashes(new Machine(), deploy(1, { run: run({ volumes }) }), "not");
  });

  it("a deployment", async () => {
    const { machine, kept } = await deployed();
    await throughAllCrashes(machine, deploy(3, { kept }), "throughout");
  });

  it("a deployment whose build never comes out the same twice: what serves is what is reported", async () => {
    const { machine, kept } = await deployed();
    const job = deploy(3, { rebuild: true, kept });
    await throughAllCrashes(machine, job, "throughout", ({ nameless, ...held }) => {
      // What served while its successor was built goes with the next deployment.
      expect(nameless.length).toBeLessThan(2);
      return held;
    });
  });

  it("a deployment that is built anew while its first build serves, whose image goes with the next deployment or the site", async () => {
    const { machine, kept } = await deployed();
    const job = deploy(3, { rebuild: true, kept });
    const { steps } = await doneBy(machine.copy(), job);
    await doneBy(machine, job, steps.indexOf("settle"));
    await after(machine, job);
    expect(machine.holds().nameless).toHaveLength(1);
    for (const next of [deploy(4, { kept }), jobOf("site.delete", { siteId, accountId, hostnames })])
      expect((await after(machine.copy(), next)).holds().nameless).toEqual([]);
  });

  it("a deployment of other variables only", async () => {
    const { machine, kept } = await deployed();
    const { source } = deploy(2).args as Deploy;
    const job = deploy(3, { run: run({ env }), source, kept });
    expect(await throughAllCrashes(machine, job, "throughout")).not.toContain("build");
  });

  it("a deployment with a release command, which runs once", async () => {
    const { machine, kept } = await deployed();
    machine.docker.state.builtWith = { [releaseLabel]: "./migrate" };
    const job = deploy(3, { kept, release: { command: null, timeoutSeconds: 60 } });
    const runs: string[][] = [];
    const steps = await throughAllCrashes(machine, job, "throughout", ({ ran, containers, ...held }) => {
      runs.push(ran);
      // An agent that ended just before it removed the command's container leaves it for a while.
      return { ...held, containers: containers.filter(({ name }) => !name.endsWith("-release")) };
    });
    expect(steps.indexOf("startContainer")).toBeGreaterThan(steps.indexOf("build"));
    // The last is done once more although it was reported.
    for (const ran of runs.slice(0, -2)) expect(ran).toEqual([`berth-${deploymentOf(3)}-release`]);
    const { containers } = (await after(machine, job)).holds();
    expect(containers.map(({ name }) => name)).toEqual([`berth-${siteId}-${deploymentOf(3)}`]);
  });

  it.each(kinds)(
    "a deployment%s that does not pass its probation, which leaves all as it was",
    async (_, given, serves) => {
      const { machine, kept } = await deployed(given);
      const before = machine.holds();
      const [key = "", value = ""] = exitsSoon.split("=");
      const exits = [{ key, value, scope: "runtime", secret: false } as const];
      const job = deploy(3, { run: run({ ...given, env: exits }), kept });
      const steps = await throughAllCrashes(machine, job, serves, (held) => {
        expect(held).toEqual(before);
        return held;
      });
      expect(steps).toEqual(expect.arrayContaining(["routeOnProbation", "takeBack"]));
    },
  );

  it.each(kinds)("a rollback%s", async (_, given, serves) => {
    const { machine, kept } = await deployed(given);
    await throughAllCrashes(machine, rollback(kept, given), serves);
  });

  it.each(kinds)("a restart%s", async (_, given, serves) => {
    const { machine } = await deployed(given);
    await throughAllCrashes(machine, again("site.restart", { ...given, env }), serves);
  });

  it("a stop, and one for a debt", async () => {
    const { machine } = await deployed();
    await throughAllCrashes(machine, stop(), "not");
    await throughAllCrashes(machine, stop({ reason: "suspended", payUrl: null }), "not");
  });

  it("a start, also with other settings", async () => {
    const { machine } = await deployed({ volumes });
    await after(machine, stop());
    await throughAllCrashes(machine, again("site.start", { volumes }), "not");
    await throughAllCrashes(machine, again("site.start", { volumes, env }), "not");
  });

  it("a change of a site's names, of one that runs and of one that is stopped", async () => {
    const { machine } = await deployed();
    const job = jobOf("site.route", { siteId, hostnames: [...hostnames, "shop.test"] });
    await throughAllCrashes(machine, job, "throughout");
    await throughAllCrashes(await after(machine, stop()), job, "not");
  });

  it.each(["site.delete", "site.evict"] as const)("a %s, which leaves nothing", async (kind) => {
    const { machine } = await deployed({ volumes, replicas: 2 });
    const job = jobOf(kind, { siteId, accountId, hostnames });
    await throughAllCrashes(machine, job, "not");
    expect((await after(machine, job)).holds()).toEqual(new Machine().holds());
  });
});
