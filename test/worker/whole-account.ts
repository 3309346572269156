import type { Page } from "../../protocol/api/common.ts";
import type { Deployment } from "../../protocol/api/deployments.ts";
import type { Answer } from "../../protocol/agent/running.ts";
import type { ToolInput, ToolName } from "../../protocol/api/tools.ts";
import { contextOf } from "../../worker/compose.ts";
import { apiKeys } from "../../worker/db/schema.ts";
import { newApiKey } from "../../worker/services/keys/create.ts";
import { ownerOf, say, scene, scripted } from "./assistant.ts";
import {
  api,
  bindings,
  createSite,
  deployResult,
  finish,
  jobOf,
  runningDatabase,
  runningSite,
  uniqueName,
} from "./service.ts";

const random = () => crypto.randomUUID();

/** An account with one of all that a tool can name, and the texts in it that nobody else may see. */
export async function wholeAccount(lasts = false) {
  const { key, host } = await scene({ lasts });
  const accountId = await ownerOf(key);
  const canaries = { secret: random(), plain: random(), command: random(), commit: random(), said: random() };
  const name = uniqueName("whole");
  const domain = `${name}.example.org`;
  const volumes = [{ name: "data", mountPath: "/data" }];
  const { siteId } = await runningSite(key, host, { name, volumes });
  const patch = (change: object) => api(key, "PATCH", `/sites/${siteId}`, change);
  await patch({ envVariables: [{ key: "PLAIN", value: canaries.plain }] });
  await patch({ envVariables: [{ key: "SECRET", value: canaries.secret, encrypted: true }] });
  await patch({ domain });
  await patch({ action: "deploy" });
  const { job, attempt } = await jobOf(host, "site.deploy");
  await finish(host, job, attempt, { ...deployResult, buildKey: "second", commitMessage: canaries.commit });
  const { body: deployments } = await api<Page<Deployment>>(key, "GET", `/sites/${siteId}/deployments`);
  const schedule = { name: "nightly", cron: "0 3 * * *", command: `echo ${canaries.command}` };
  await api(key, "POST", `/sites/${siteId}/schedules`, schedule);
  const { body: run } = await api<{ id: string }>(key, "POST", `/sites/${siteId}/commands`, {
    command: `echo ${canaries.command}`,
  });
  const { databaseId, spec, name: databaseName } = await runningDatabase(key, host);
  await api(key, "POST", `/databases/${databaseId}/links`, { siteId });
  const { invoiceId, invoiceToken } = await createSite(key, { name: uniqueName("unpaid") });
  const ctx = contextOf(bindings, { type: "system" }, () => undefined);
  const [older, backup] = [ctx.newId("backup"), ctx.newId("backup")];
  for (const id of [older, backup])
    await bindings.DB.prepare(
      `INSERT INTO backups (id, database_id, account_id, status, "trigger", name, database_name, type, image, pack_id, created_at)
        SELECT ?, id, account_id, 'VERIFIED', 'api', name, database_name, type, image, pack_id, 0 FROM databases WHERE id = ?`,
    )
      .bind(id, databaseId)
      .run();
  const other = await newApiKey(ctx, accountId, "laptop", "setup");
  await ctx.db.insert(apiKeys).values(other.row);
  const { body: webhook } = await api<{ url: string }>(key, "GET", `/sites/${siteId}/webhook`);
  scripted({ text: canaries.said });
  const { conversationId } = (await say(key, canaries.said)).body;
  const ids = {
    site: siteId,
    db: databaseId,
    deployment: deployments.data.at(-1)?.id ?? "",
    backup,
    invoice: invoiceId,
    key: other.row.id,
    run: run.id,
    domain,
  };
  const texts = [
    ...Object.values(canaries),
    webhook.url.split("/").at(-1) ?? "",
    invoiceToken,
    other.key,
    spec.logins[0]?.password ?? "",
  ];
  return { key, host, accountId, name, databaseName, conversationId, ids, canaries: texts };
}

type Named = { site: string; db: string; deployment: string; backup: string; invoice: string; key: string };

/** Valid arguments of each tool, which name what these are; tools that take none act on the caller's own account. */
export const argumentsAbout = ({
  site,
  db,
  deployment,
  backup,
  invoice,
  key,
  run,
  domain,
}: Named & { run: string; domain: string }): { [Name in ToolName]: ToolInput<Name> } => ({
  list_sites: {},
  get_site: { site },
  create_site: { name: uniqueName("own"), deployType: "image", image: "nginx", port: 80 },
  detect_framework: { githubUrl: "github.com/owner/app" },
  update_site_settings: { site, settings: { port: 4321 } },
  diagnose_site: { site },
  start_site: { site },
  stop_site: { site },
  restart_site: { site },
  set_maintenance_mode: { site, on: true },
  delete_site: { site, deleteVolumes: true },
  clone_site: { site, name: uniqueName("copy") },
  deploy_site: { site },
  list_deployments: { site },
  get_deployment: { deployment },
  get_build_logs: { deployment },
  explain_failed_deployment: { deployment },
  cancel_deployment: { deployment },
  list_rollback_targets: { site },
  rollback_site: { site, deployment },
  get_deploy_webhook: { site },
  rotate_deploy_webhook: { site },
  set_health_check: { site, path: "/up" },
  set_lifecycle_policy: {
    site,
    policy: { restartPolicy: "always", drainSeconds: 1, stopTimeoutSeconds: 1 },
  },
  run_health_check: { site },
  probe_url: { site },
  scale_site: { site, replicas: 2 },
  get_site_logs: { site },
  search_log_history: { site, text: "a" },
  get_access_logs: { site },
  get_request_stats: { site },
  get_site_metrics: { site },
  get_disk_usage: { site },
  list_container_events: { site },
  list_unhealthy_resources: {},
  list_env_vars: { site },
  set_env_vars: { site, entries: [{ key: "PLAIN", value: "other" }] },
  delete_env_vars: { site, keys: ["PLAIN"] },
  list_env_history: { site },
  restore_env_version: { site, version: 1 },
  generate_secret: { site, key: "SECRET" },
  list_domains: { site },
  add_domain: { site, domain: `other.${domain}` },
  verify_domain: { site, domain },
  remove_domain: { site, domain },
  set_primary_domain: { site, domain },
  set_redirect_rules: { site, rules: [] },
  set_access_protection: { site, auth: { username: "other", password: "a long password" } },
  get_certificate: { site, domain },
  renew_certificate: { site, domain },
  list_databases: {},
  get_database: { db },
  create_database: { name: uniqueName("own"), type: "redis" },
  start_database: { db },
  stop_database: { db },
  restart_database: { db },
  delete_database: { db, skipFinalBackup: true },
  get_connection_string: { db },
  link_database: { db, site, linked: false },
  rotate_database_password: { db },
  describe_schema: { db },
  run_read_query: { db, query: "SELECT 1" },
  run_write_query: { db, query: "DELETE FROM orders" },
  list_active_queries: { db },
  kill_query: { db, query: "7" },
  list_slow_queries: { db },
  get_database_metrics: { db },
  get_database_logs: { db },
  create_backup: { db },
  list_backups: { db },
  verify_backup: { backup },
  restore_backup: { db, backup },
  delete_backup: { backup },
  set_backup_schedule: { db, settings: { keep: 1 } },
  get_backup_download_link: { backup },
  browse_files: { site, path: "/" },
  list_volumes: { site },
  create_volume: { site, name: "more", path: "/more" },
  delete_volume: { site, name: "data" },
  list_cron_jobs: { site },
  set_cron_job: { site, name: "nightly", cron: "@hourly", command: "true" },
  delete_cron_job: { site, name: "nightly" },
  run_command: { site, command: "true" },
  get_job_output: { run },
  list_packs: {},
  list_invoices: {},
  get_invoice: { invoice },
  cancel_invoice: { invoice },
  change_pack: { site, packId: "pack_001k0000000000000000000002" },
  get_credit_balance: {},
  create_credit_invoice: { packageId: "cpk_none" },
  get_account: {},
  list_api_keys: {},
  revoke_api_key: { key },
  list_activity: { resource: site },
});

/** Tables of what a conversation itself leaves: its credits, its list, its own log. */
const ofChat = new Set(["conversations", "ledger_accounts", "ledger_transfers", "ledger_holds", "changes"]);

/**
 * All rows of the record that are about the account or name one of its things, but for what talking to the assistant
 * leaves. `about`: the account's id and those of its things.
 */
export async function recordOf(about: readonly string[]): Promise<Record<string, unknown[]>> {
  const { results: tables } = await bindings.DB.prepare(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*' AND name NOT GLOB '_cf_*' AND name <> 'd1_migrations'",
  ).all<{ name: string }>();
  const record: Record<string, unknown[]> = {};
  for (const { name } of tables) {
    if (ofChat.has(name)) continue;
    const { results } = await bindings.DB.prepare(`SELECT * FROM "${name}"`).all();
    record[name] = results
      .map(({ last_used_at: _used, ...row }) => row)
      // A call of a tool is no change.
      .filter((row) => name !== "activity" || !String(row["operation"]).includes("_"))
      .filter((row) =>
        row["account_id"] === undefined
          ? about.some((id) => JSON.stringify(row).includes(id))
          : row["account_id"] === about[0],
      );
  }
  return record;
}

/** Answers whatever the host is asked, as a host does; tells the kinds of what it was asked. */
export function answering(host: {
  next: Awaited<ReturnType<typeof scene>>["host"]["next"];
  send(message: object): void;
}) {
  const asked: string[] = [];
  const answers: Partial<Record<string, Answer>> = {
    insight: {
      kind: "insight",
      insight: {
        sizeMb: 1,
        connections: { used: 1, max: 9 },
        cacheHitRatio: null,
        uptimeSeconds: 1,
        activeQueries: [],
        slowQueries: [],
      },
    },
    query: {
      kind: "query",
      result: { columns: [], rows: [], truncated: false, affectedRows: 3, durationMs: 1 },
    },
  };
  void (async () => {
    for (;;) {
      const { requestId, question } = await host.next("ask");
      asked.push(question.kind);
      const answer = answers[question.kind] ?? { kind: "refused", error: "Not now." };
      host.send({ type: "answer", requestId, answer, last: true });
    }
  })();
  return asked;
}
