import { expect } from "vitest";
import type { Deployment } from "../../../protocol/api/deployments.ts";
import type { Page } from "../../../protocol/api/common.ts";
import type { Id } from "../../../protocol/ids.ts";
import { answerNext, effectsOf, scene, useTool } from "../assistant.ts";
import {
  api,
  bindings,
  call,
  createSite,
  deployingSite,
  deployResult,
  fail,
  finish,
  jobOf,
  runningSite,
  site,
  uniqueName,
} from "../service.ts";

const deploymentsOf = async (key: string, siteId: string) =>
  (await api<Page<Deployment>>(key, "GET", `/sites/${siteId}/deployments`)).body.data;
const line = (text: string) => ({ at: new Date(0).toISOString(), stream: "stdout" as const, text });

/** A site with a deployment in progress, which the host has. */
async function deploying() {
  const { key, host } = await scene();
  const name = uniqueName("tool");
  const made = await deployingSite(key, host, { name });
  const [deployment] = await deploymentsOf(key, made.siteId);
  const deploymentId = deployment?.id as Id<"deployment">;
  const write = (...texts: string[]) =>
    bindings.DEPLOYMENT_LOG.get(bindings.DEPLOYMENT_LOG.idFromName(deploymentId)).append(
      made.attempt,
      1,
      texts.map(line),
    );
  return { key, host, name, deploymentId, write, ...made };
}

/** A site that was deployed twice. */
async function redeployed(envVariables?: object[]) {
  const { key, host } = await scene();
  const name = uniqueName("tool");
  const { siteId } = await runningSite(key, host, { name });
  if (envVariables) await api(key, "PATCH", `/sites/${siteId}`, { envVariables });
  await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
  const { job, attempt } = await jobOf(host, "site.deploy");
  await finish(host, job, attempt, {
    ...deployResult,
    imageId: `sha256:${"c".repeat(64)}`,
    imageDigest: `sha256:${"c".repeat(64)}`,
    buildKey: "second",
  });
  const [second, first] = await deploymentsOf(key, siteId);
  return { key, host, name, siteId, first, second };
}

/** More failed deployments than a page has. */
const failMany = (siteId: string) =>
  bindings.DB.prepare(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120)
      INSERT INTO deployments (id, site_id, account_id, number, status, trigger, created_at)
      SELECT 'dep_zzz' || substr(id, -8) || i, id, account_id, 100 + i, 'FAILED', 'api', 0 FROM sites, n WHERE id = ?`,
  )
    .bind(siteId)
    .run();

effectsOf("deployments", {
  deploy_site: [
    "has the host deploy it, recorded as the chat's",
    async () => {
      const { key, host } = await scene();
      const { siteId } = await runningSite(key, host, { name: "to-deploy" });
      await useTool(key, "deploy_site", { site: "to-deploy" });
      await jobOf(host, "site.deploy");
      expect((await deploymentsOf(key, siteId))[0]).toMatchObject({ trigger: "chat", status: "BUILDING" });
    },
  ],
  list_deployments: [
    "shows the newest first with what became of it",
    async () => {
      const { key, name, first, second } = await redeployed();
      const { result } = await useTool(key, "list_deployments", { site: name });
      expect(result).toMatchObject([
        { id: second?.id, status: "LIVE" },
        // Whole, as deploy_site takes it.
        { id: first?.id, status: "SUPERSEDED", commit: "a".repeat(40) },
      ]);
    },
  ],
  get_deployment: [
    "shows one with its commit and times",
    async () => {
      const { key, first } = await redeployed();
      const { result } = await useTool(key, "get_deployment", { deployment: first?.id ?? "" });
      expect(result).toMatchObject({ id: first?.id, commit: "a".repeat(40), durations: { build: 2 } });
    },
  ],
  get_build_logs: [
    "shows the lines that hold a text, and the end of a log of any length",
    async () => {
      const { key, deploymentId, write } = await deploying();
      await write("npm ci", "warning: old", ...Array.from({ length: 22_000 }, () => "…"), "done");
      const { result: end } = await useTool(key, "get_build_logs", { deployment: deploymentId, tail: 2 });
      expect(end).toEqual(["…", "done"]);
      const { result } = await useTool(key, "get_build_logs", { deployment: deploymentId, search: "warn" });
      expect(result).toEqual(["warning: old"]);
    },
  ],
  explain_failed_deployment: [
    "gathers the error, the last lines and what was good before",
    async () => {
      const { key, host, name, job, attempt, write } = await deploying();
      await write("npm ERR! missing script: build");
      await fail(host, job, attempt, "The build failed: npm exited with 1.");
      const { result } = await useTool(key, "explain_failed_deployment", { site: name });
      expect(JSON.stringify(result)).toContain("npm exited with 1");
      expect(JSON.stringify(result)).toContain("missing script: build");
    },
  ],
  cancel_deployment: [
    "has the host end it",
    async () => {
      const { key, host, deploymentId, job } = await deploying();
      await useTool(key, "cancel_deployment", { deployment: deploymentId });
      expect(await host.next("cancel")).toMatchObject({ jobId: job.id });
    },
  ],
  list_rollback_targets: [
    "lists deployments whose image is kept with age, size and what their environment lacks, and none of many that failed",
    async () => {
      const { key, host, name, siteId, first, second } = await redeployed([{ key: "COLOUR", value: "blue" }]);
      await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
      const { job, attempt } = await jobOf(host, "site.deploy");
      await fail(host, job, attempt);
      await failMany(siteId);
      await bindings.DB.prepare("UPDATE deployments SET finished_at = finished_at - 7200000 WHERE id = ?")
        .bind(first?.id)
        .run();
      const listing = useTool(key, "list_rollback_targets", { site: name });
      const images = [{ deploymentId: first?.id ?? "", sizeMb: 12.5 }];
      const found = { writtenMb: 0, volumes: [], images, logMb: 0, buildCacheMb: null, countedMb: 0 };
      await answerNext(host, { kind: "disk", found: [{ id: siteId as Id<"site">, ...found }] });
      expect((await listing).result).toMatchObject([
        { id: second?.id, ageHours: 0, sizeMb: null, environment: [] },
        { id: first?.id, ageHours: 2, sizeMb: 12.5, environment: [{ key: "COLOUR", change: "added" }] },
      ]);
    },
  ],
  rollback_site: [
    "has the host run the earlier image again after a yes, also behind many that failed; not another site's",
    async () => {
      const { key, host, name, siteId, first } = await redeployed();
      await failMany(siteId);
      const other = await runningSite(key, host, { name: uniqueName("other") });
      const [foreign] = await deploymentsOf(key, other.siteId);
      const { result } = await useTool(
        key,
        "rollback_site",
        { site: name, deployment: foreign?.id },
        { asks: false },
      );
      expect(JSON.stringify(result)).toContain(`${name} has no deployment ${foreign?.id}`);
      const { asked } = await useTool(key, "rollback_site", { site: name, deployment: first?.id });
      expect(asked).toContain("deployment 1");
      const { job, attempt } = await jobOf(host, "site.deploy");
      await finish(host, job, attempt, deployResult);
      const live = await api<Page<Deployment>>(key, "GET", `/sites/${siteId}/deployments?status=LIVE`);
      expect(live.body.data).toMatchObject([{ trigger: "rollback", rollbackOf: first?.id }]);
    },
  ],
  get_deploy_webhook: [
    "shows the person the address, and it deploys; the model is not told it",
    async () => {
      const { key, host } = await scene();
      const { siteId } = await runningSite(key, host, { name: "hooked" });
      const { reply, result } = await useTool(key, "get_deploy_webhook", { site: "hooked" });
      const address = /https?:\S+\/webhooks\/deploy\/\S+/.exec(reply.message)?.[0] ?? "";
      expect(JSON.stringify(result)).not.toContain("/webhooks/deploy/");
      expect((await call(new URL(address).pathname, { method: "POST" })).status).toBe(202);
      expect((await site(key, siteId)).status).toBe("DEPLOYING");
    },
  ],
  rotate_deploy_webhook: [
    "gives a new address, and the old one stops",
    async () => {
      const { key } = await scene();
      const { siteId } = await createSite(key, { name: "to-rotate" });
      const { url } = (await api<{ url: string }>(key, "GET", `/sites/${siteId}/webhook`)).body;
      const { reply } = await useTool(key, "rotate_deploy_webhook", { site: "to-rotate" });
      const now = (await api<{ url: string }>(key, "GET", `/sites/${siteId}/webhook`)).body.url;
      expect(now).not.toBe(url);
      expect(reply.message).toContain(now);
      expect((await call(new URL(url).pathname, { method: "POST" })).status).toBe(404);
    },
  ],
});
