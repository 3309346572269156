import type { Deployment } from "../../../protocol/api/deployments.ts";
import { call } from "../call.ts";
import type { Ctx } from "../../ctx.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { asks, changeSite, endOfLog, hoursSince, siteId, siteNamed } from "../resources.ts";
import { Revealed, type Tools } from "../tool.ts";

type Names =
  | "deploy_site"
  | "list_deployments"
  | "get_deployment"
  | "get_build_logs"
  | "explain_failed_deployment"
  | "cancel_deployment"
  | "list_rollback_targets"
  | "rollback_site"
  | "get_deploy_webhook"
  | "rotate_deploy_webhook";

const newest = async (ctx: Ctx, site: string) =>
  (await call(ctx, "listDeployments", { id: await siteId(ctx, site), limit: 100 })).data;

export const deploymentTools: Tools<Names> = {
  deploy_site: {
    run: async (ctx, { site, rebuild, ref }) =>
      changeSite<"action">(ctx, await siteId(ctx, site), { action: "deploy", rebuild, ref }),
  },
  list_deployments: {
    async run(ctx, { site, limit = 20 }) {
      const { data } = await call(ctx, "listDeployments", { id: await siteId(ctx, site), limit });
      return data.map(({ id, number, status, trigger, commit, commitMessage, error, createdAt }) => ({
        id,
        number,
        status,
        trigger,
        commit,
        commitMessage,
        error,
        createdAt,
      }));
    },
  },
  get_deployment: { run: (ctx, { deployment }) => call(ctx, "getDeployment", { id: deployment }) },
  get_build_logs: {
    run: async (ctx, { deployment, ...asked }) => endOfLog(ctx, "getDeploymentLogs", deployment, asked),
  },
  explain_failed_deployment: {
    async run(ctx, { site, deployment }) {
      if ((site === undefined) === (deployment === undefined))
        throw invalid("site", "either site or deployment");
      if (deployment !== undefined) return call(ctx, "explainDeployment", { id: deployment });
      const all = await newest(ctx, site ?? "");
      const failed = all.find(({ status }) => status === "FAILED");
      if (!failed) return { failed: false as const, note: "None of the last 100 deployments failed." };
      const [{ id, status, number } = failed] = all;
      return {
        ...(await call(ctx, "explainDeployment", { id: failed.id })),
        since: id === failed.id ? null : { status, number },
      };
    },
  },
  cancel_deployment: { run: (ctx, { deployment }) => call(ctx, "cancelDeployment", { id: deployment }) },
  list_rollback_targets: {
    async run(ctx, { site }) {
      const { id: siteId, currentDeployment } = await siteNamed(ctx, site);
      // By status: those that failed may be more than a page.
      const [live, superseded, disk] = await Promise.all([
        call(ctx, "listDeployments", { id: siteId, status: "LIVE", limit: 100 }),
        call(ctx, "listDeployments", { id: siteId, status: "SUPERSEDED", limit: 100 }),
        call(ctx, "getSiteDisk", { id: siteId }),
      ]);
      const targets = [...live.data, ...superseded.data].filter(({ canRollBack }) => canRollBack);
      const current = targets.find(({ id }) => id === currentDeployment?.id);
      const differences = async ({ id, envVersion }: Deployment) =>
        current === undefined || envVersion === current.envVersion
          ? []
          : (await call(ctx, "compareDeployments", { id, deploymentId: current.id })).environment;
      return Promise.all(
        targets.map(async (target) => ({
          id: target.id,
          number: target.number,
          commit: target.commit,
          commitMessage: target.commitMessage,
          envVersion: target.envVersion,
          finishedAt: target.finishedAt,
          ageHours: target.finishedAt === null ? null : hoursSince(ctx, target.finishedAt),
          sizeMb: disk.images.find(({ deploymentId }) => deploymentId === target.id)?.sizeMb ?? null,
          environment: await differences(target),
        })),
      );
    },
  },
  rollback_site: {
    run: async (ctx, { site, deployment, withEnv = true }) =>
      call(ctx, "rollbackSite", { id: await siteId(ctx, site), deploymentId: deployment, withEnv }),
    async consequence(ctx, { site, deployment, withEnv = true }) {
      const found = await siteNamed(ctx, site);
      const target =
        deployment === undefined ? undefined : await call(ctx, "getDeployment", { id: deployment });
      if (target && target.siteId !== found.id)
        throw conflict(`${found.name} has no deployment ${deployment}.`);
      const superseded = { id: found.id, status: "SUPERSEDED", limit: 1 } as const;
      const isPossible = target
        ? target.canRollBack
        : (await call(ctx, "listDeployments", superseded)).data.length > 0;
      if (!isPossible)
        throw conflict(
          `${found.name} cannot be rolled back to ${target ? `deployment ${target.number}` : "an earlier deployment"}: list_rollback_targets names those that are kept.`,
        );
      return asks(
        `Roll the site ${found.name} back to ${
          target ? `deployment ${target.number}` : "the deployment before the current one"
        }, with that deployment's image and ${withEnv ? "environment" : "the newest environment"}.`,
        [found.id, found.updatedAt, found.currentDeployment?.id],
      );
    },
  },
  get_deploy_webhook: {
    async run(ctx, { site }) {
      const { url } = await call(ctx, "getWebhook", { id: await siteId(ctx, site) });
      return new Revealed(
        { shown: "The address is on the person's screen." },
        `Deploy webhook of ${site}: ${url}`,
      );
    },
    async consequence(ctx, { site }) {
      const { id, name } = await siteNamed(ctx, site);
      return asks(
        `Show the deploy webhook address of the site ${name} here: whoever has it can deploy the site.`,
        id,
      );
    },
  },
  rotate_deploy_webhook: {
    async run(ctx, { site }) {
      const { url } = await call(ctx, "rotateWebhook", { id: await siteId(ctx, site) });
      return new Revealed(
        { shown: "The new address is on the person's screen." },
        `New deploy webhook of ${site}: ${url}`,
      );
    },
    async consequence(ctx, { site }) {
      const { id, name } = await siteNamed(ctx, site);
      // Another site may have the name by then.
      return asks(`Give the site ${name} a new deploy webhook address: the old address stops working.`, id);
    },
  },
};
