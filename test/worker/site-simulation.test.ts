import { expect, it } from "vitest";
import type { SiteStatus } from "../../protocol/states.ts";
import { cancelDeployment } from "../../worker/services/deployments/cancel.ts";
import { actOnSite } from "../../worker/services/sites/act.ts";
import { removeSite } from "../../worker/services/sites/remove.ts";
import { rollbackSite } from "../../worker/services/sites/rollback.ts";
import { setSiteEnv } from "../../worker/services/sites/set-env.ts";
import { createSite, deployResult, pay } from "./service.ts";
import { Simulation, simulateSeeds, type Effect, type Verbs } from "./simulation-service.ts";
import { rows } from "./stripe-service.ts";

const rounds = 5;
let commits = 0;
const effect: Effect = ({ kind, args }, _attempt, containers) => {
  if ("parked" in args && args.parked) return { ...deployResult, parked: true };
  if ("deploymentId" in args) containers.set(args.run.siteId, args.deploymentId);
  else if ("siteId" in args) containers.delete(args.siteId);
  return kind === "site.deploy" ? { ...deployResult, commit: String(++commits).padStart(40, "0") } : {};
};

type Row = {
  status: SiteStatus;
  wanted: string;
  serving: number;
  host_id: string;
  current_deployment_id: string;
};

/** One run again: `BERTH_SEED=123 vitest run --project worker test/worker/site-simulation.test.ts`. */
async function simulate(seed: number, seen: Set<string>): Promise<void> {
  const simulation = await Simulation.of(seed, effect);
  const { siteId, invoiceToken } = await createSite(simulation.key);
  await pay(invoiceToken);

  const act = (action: "deploy" | "start" | "stop" | "restart") =>
    simulation.command(
      action,
      (ctx) => actOnSite(ctx, { id: siteId, action }),
      action === "stop" ? "STOPPED" : "RUNNING",
    );
  const verbs: Verbs = {
    ...simulation.verbs,
    deploy: act("deploy"),
    start: act("start"),
    stop: act("stop"),
    restart: act("restart"),
    rollback: simulation.command("rollback", (ctx) => rollbackSite(ctx, { id: siteId }), "RUNNING"),
    env: simulation.command("env", (ctx) =>
      setSiteEnv(ctx, { id: siteId, envVariables: [{ key: "A", value: ctx.newMark() }] }),
    ),
    cancel: simulation.command(
      "cancel",
      async (ctx) => {
        const [newest] = await rows<{ id: string }>("SELECT id FROM deployments ORDER BY number DESC");
        await cancelDeployment(ctx, { id: newest?.id ?? "" });
      },
      null,
    ),
  };
  const commands = ["deploy", "start", "stop", "restart", "rollback"];
  const hosts = ["done", "done", "done", "done", "fail", "fail", "tick", "reconnect"];
  const play = () =>
    simulation.play(
      verbs,
      [...commands, "deploy", "env", "cancel", ...hosts, "drain", "activate", "lose"],
      commands,
    );

  const waiting = () =>
    rows(
      `SELECT kind AS what, status FROM jobs WHERE status IN ('QUEUED', 'LEASED')
        UNION ALL SELECT 'deployment', status FROM deployments WHERE status IN ('QUEUED', 'BUILDING', 'STARTING')
        UNION ALL SELECT 'site', status FROM sites
          WHERE status IN ('DEPLOYING', 'DELETING') OR leaving_host_id IS NOT NULL OR move_host_id IS NOT NULL`,
    );
  for (let round = 0; round < rounds; round++) {
    await play();
    await simulation.quiet(waiting);
    const [site] = await rows<Row>(
      "SELECT status, wanted, serving, host_id, current_deployment_id FROM sites",
    );
    const is = (guarantee: string) => simulation.where(`${guarantee}\n${JSON.stringify(site)}`);
    const runs = site?.status === "RUNNING";
    expect(simulation.containers(), is("what runs is what the record says")).toEqual(
      runs ? { [site.host_id]: site.current_deployment_id } : {},
    );
    expect(site?.serving, is("what runs is served, and nothing else")).toBe(runs ? 1 : 0);
    if (runs) expect(site.wanted, is("what runs is wanted")).toBe("RUNNING");
    if (simulation.asked)
      expect(site?.status, is("what the last accepted command asked for is what is")).toBe(simulation.asked);
    seen.add(`${site?.status} as ${simulation.asked ?? "none"} was asked for`);
  }
  // In the middle of it all.
  await play();
  await simulation.command("delete", (ctx) => removeSite(ctx, { id: siteId }))();
  await simulation.quiet(waiting);
  expect(
    [simulation.containers(), await rows("SELECT id FROM sites UNION ALL SELECT id FROM deployments")],
    simulation.where("a deleted site leaves nothing"),
  ).toEqual([{}, []]);
  simulation.close();
}

it(
  "whatever is asked for and lost in any order, a site ends as it was asked for last, and runs where its record says",
  () => simulateSeeds(simulate),
  240_000,
);
