import { expect } from "vitest";
import type { Page } from "../../../protocol/api/common.ts";
import type { SiteDiagnosis } from "../../../protocol/api/diagnosis.ts";
import type { Site } from "../../../protocol/api/sites.ts";
import { operations } from "../../../protocol/api/operations.ts";
import { SourceInspection } from "../../../protocol/api/sources.ts";
import { wellContainer } from "../../support/site-container.ts";
import { answerNext, effectsOf, scene, serving, useTool } from "../assistant.ts";
import {
  account,
  api,
  bindings,
  createSite,
  finish,
  jobOf,
  runningSite,
  site,
  siteUrl,
  uniqueName,
} from "../service.ts";

const sitesOf = async (key: string) => (await api<Page<Site>>(key, "GET", "/sites")).body.data;

/** A site that runs, and its host. */
async function running(overrides: Record<string, unknown> = {}) {
  const { key, host } = await scene();
  const name = uniqueName("tool");
  const { siteId } = await runningSite(key, host, { name, ...overrides });
  return { key, host, name, siteId };
}

effectsOf("sites", {
  list_sites: [
    "names the account's sites and nobody else's, all of them page by page, however many",
    async () => {
      const { key, name, siteId } = await running();
      await createSite(await account(), { name: "strange" });
      const { result } = await useTool(key, "list_sites", {});
      expect(result).toMatchObject({ sites: [{ id: siteId, name, status: "RUNNING" }], nextCursor: null });
      await bindings.DB.prepare(
        `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
         INSERT INTO sites (id, account_id, name, status, deploy_type, port, pack_id, billing_term, slug, webhook_hash, created_at, updated_at)
         SELECT 'site_z' || printf('%03d', i) || substr(id, 10), account_id, 'customer-shop-' || i, 'PENDING', deploy_type, port, pack_id,
           billing_term, 'customer-shop-' || i || '-4f7k', 'listed-' || i, created_at, updated_at FROM sites, n WHERE id = ?`,
      )
        .bind(siteId)
        .run();
      const names: string[] = [];
      for (let cursor: string | null | undefined; cursor !== null;) {
        const { result } = await useTool(key, "list_sites", { cursor });
        const page = result as { sites: Pick<Site, "name">[]; nextCursor: string | null };
        names.push(...page.sites.map((one) => one.name));
        cursor = page.nextCursor;
      }
      expect((await useTool(key, "list_sites", { name: "shop-7" })).result).toMatchObject({
        sites: [{ name: "customer-shop-7" }],
        nextCursor: null,
      });
      expect(names).toEqual([...Array.from({ length: 60 }, (_, at) => `customer-shop-${60 - at}`), name]);
    },
  ],
  get_site: [
    "shows settings, what it costs, why it is not well, and the names of variables, not their values",
    async () => {
      const { key, name, siteId } = await running({ port: 4321 });
      await api(key, "PATCH", `/sites/${siteId}`, { envVariables: [{ key: "TONE", value: "low-voice" }] });
      const { result } = await useTool(key, "get_site", { site: name });
      expect(result).toMatchObject({ id: siteId, port: 4321, variables: ["TONE"] });
      expect(JSON.stringify(result)).not.toContain("low-voice");
      expect(result).toMatchObject({
        problem: null,
        costs: { pack: expect.any(String) as string, months: 1, amountCents: expect.any(Number) as number },
      });
      await bindings.DB.prepare("UPDATE sites SET status = 'FAILED' WHERE id = ?").bind(siteId).run();
      const { result: failed } = await useTool(key, "get_site", { site: name });
      expect(failed).toMatchObject({ problem: "it is FAILED" });
    },
  ],
  create_site: [
    "makes a PENDING site and says where its invoice is paid",
    async () => {
      const { key } = await scene();
      const { result } = await useTool(key, "create_site", {
        name: "made-by-chat",
        deployType: "image",
        image: "nginx",
        port: 80,
        billingTerm: 1,
      });
      const { siteId, payAt } = result as { siteId: string; payAt: string };
      expect(await site(key, siteId)).toMatchObject({ name: "made-by-chat", status: "PENDING", port: 80 });
      expect(payAt).toMatch(new RegExp(`^${siteUrl}/invoice/inv_`));
    },
  ],
  detect_framework: [
    "has a host read the repository, and makes nothing",
    async () => {
      const { key, host } = await scene();
      const found = SourceInspection.parse(operations.inspectSource.examples.answer);
      const using = useTool(key, "detect_framework", { githubUrl: "github.com/owner/repository" });
      expect(await answerNext(host, { kind: "source", found })).toMatchObject({ kind: "source" });
      expect((await using).result).toEqual(found);
      expect(await sitesOf(key)).toEqual([]);
    },
  ],
  update_site_settings: [
    "changes what the next deployment uses",
    async () => {
      const { key, name, siteId } = await running();
      await useTool(key, "update_site_settings", { site: name, settings: { startCommand: "node other.js" } });
      expect(await site(key, siteId)).toMatchObject({ startCommand: "node other.js" });
    },
  ],
  start_site: [
    "starts a stopped site on its host",
    async () => {
      const { key, host, name, siteId } = await running();
      await api(key, "PATCH", `/sites/${siteId}`, { action: "stop" });
      const stop = await jobOf(host, "site.stop");
      await finish(host, stop.job, stop.attempt);
      await useTool(key, "start_site", { site: name });
      const start = await jobOf(host, "site.start");
      await finish(host, start.job, start.attempt);
      expect((await site(key, siteId)).status).toBe("RUNNING");
    },
  ],
  stop_site: [
    "stops it on its host after a yes that was told what that means",
    async () => {
      const { key, host, name, siteId } = await running();
      const { asked } = await useTool(key, "stop_site", { site: name });
      expect(asked).toContain("503");
      const stop = await jobOf(host, "site.stop");
      await finish(host, stop.job, stop.attempt);
      expect((await site(key, siteId)).status).toBe("STOPPED");
    },
  ],
  restart_site: [
    "has its host restart it",
    async () => {
      const { key, host, name } = await running();
      await useTool(key, "restart_site", { site: name });
      await jobOf(host, "site.restart");
    },
  ],
  set_maintenance_mode: [
    "has its host show the page after a yes, and ends that without one",
    async () => {
      const { key, host, name, siteId } = await running();
      const message = "Back at <b>noon</b>";
      const { asked } = await useTool(key, "set_maintenance_mode", { site: name, on: true, message });
      expect(asked).toContain("503");
      expect(asked).toContain(`It says: “${message}”`);
      const shown = await jobOf(host, "site.route");
      expect(shown.job.args).toMatchObject({ siteId, ingress: { maintenance: { message } } });
      await finish(host, shown.job, shown.attempt);
      expect((await site(key, siteId)).ingress.maintenance).toEqual({ message });
      await useTool(key, "set_maintenance_mode", { site: name, on: false }, { asks: false });
      expect((await jobOf(host, "site.route")).job.args).toMatchObject({ siteId, ingress: {} });
      expect((await site(key, siteId)).ingress.maintenance).toBeNull();
    },
  ],
  delete_site: [
    "has its host remove everything after a yes that names kept volumes as well, and then the site is gone",
    async () => {
      const { key, host, name, siteId } = await running();
      const { asked } = await useTool(key, "delete_site", { site: name });
      expect(asked).toContain(
        `${name} permanently, with its containers, images, volumes, variables and domains. It is RUNNING; its own domains: none; linked databases: none; volumes: none; variables: 0.`,
      );
      const removal = await jobOf(host, "site.delete");
      await finish(host, removal.job, removal.attempt);
      expect((await api(key, "GET", `/sites/${siteId}`)).status).toBe(404);

      // A volume that was taken out of the settings keeps its data.
      const volumes = [{ name: "uploads", mountPath: "/uploads" }];
      const kept = await runningSite(key, host, { name: "keeps", volumes });
      await api(key, "PATCH", `/sites/${kept.siteId}`, { settings: { volumes: [] } });
      const sizes = { kind: "volumes" as const, volumes: [] };
      const refused = useTool(key, "delete_site", { site: "keeps" }, { asks: false });
      await answerNext(host, sizes);
      expect((await refused).result).toEqual({
        error: expect.stringContaining("volumes (uploads)") as string,
      });
      const using = useTool(key, "delete_site", { site: "keeps", deleteVolumes: true });
      for (let count = 0; count < 2; count++) await answerNext(host, sizes);
      expect((await using).asked).toContain("volumes: uploads (last backup: there is none)");
      await jobOf(host, "site.delete");
    },
  ],
  diagnose_site: [
    "names what its host and a visitor find, the first problem first",
    async () => {
      const { key, host, name, siteId } = await running();
      const { host: address } = new URL((await site(key, siteId)).url);
      serving(address, () => new Response("down", { status: 502 }));
      const using = useTool(key, "diagnose_site", { site: name });
      const dead = { ...wellContainer, running: false, exitCode: 3, probe: null, listens: [] };
      const health = { route: "serving" as const, hostnames: [], containers: [dead], diskFreeMb: 50_000 };
      await answerNext(host, { kind: "health", health });
      const result = (await using).result as SiteDiagnosis;
      expect(result).toMatchObject({
        healthy: false,
        summary: expect.stringContaining("exit code 3") as string,
      });
      expect(result.checks.find(({ check }) => check === "dns")?.finding).toContain("answers 502");
      expect(result.checks.find(({ check }) => check === "changes")?.finding).toContain("createSite");
    },
  ],
  clone_site: [
    "makes another with its settings and plain variables, and names the secrets that are to be set",
    async () => {
      const { key, name, siteId } = await running({ port: 4321, branch: "next" });
      const envVariables = [
        { key: "PLAIN", value: "seen" },
        { key: "SECRET", value: "hidden", encrypted: true },
      ];
      await api(key, "PATCH", `/sites/${siteId}`, { envVariables });
      const { result } = await useTool(key, "clone_site", { site: name, name: "twin", billingTerm: 1 });
      expect(result).toMatchObject({ secretsToSet: ["SECRET"] });
      const twin = (await sitesOf(key)).find((one) => one.name === "twin");
      expect(twin).toMatchObject({ port: 4321, branch: "next", status: "PENDING" });
      expect((await site(key, twin?.id ?? "")).envVariables).toMatchObject([{ key: "PLAIN", value: "seen" }]);
    },
  ],
});
