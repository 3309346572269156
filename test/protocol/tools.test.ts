import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { toolsHeldBy } from "../support/tools-held-by.ts";
import { toolGroups, tools, type ToolGroup, type ToolName } from "../../protocol/api/tools.ts";

const file = (group: string) => join(import.meta.dirname, "..", "worker", "tools", `${group}.test.ts`);

/** What the assistant promises: a tool that is renamed or removed breaks its users. */
const promised = (
  "list_sites get_site create_site update_site_settings start_site stop_site restart_site delete_site " +
  "clone_site set_maintenance_mode detect_framework deploy_site list_deployments get_deployment " +
  "get_build_logs explain_failed_deployment cancel_deployment list_rollback_targets rollback_site " +
  "get_deploy_webhook rotate_deploy_webhook set_health_check run_health_check set_lifecycle_policy " +
  "scale_site probe_url get_site_logs search_log_history get_access_logs get_request_stats " +
  "get_site_metrics get_disk_usage list_container_events diagnose_site list_unhealthy_resources " +
  "list_env_vars set_env_vars delete_env_vars list_env_history restore_env_version generate_secret " +
  "list_domains add_domain verify_domain remove_domain set_primary_domain get_certificate " +
  "renew_certificate set_redirect_rules set_access_protection list_databases get_database " +
  "create_database start_database stop_database restart_database delete_database get_connection_string " +
  "link_database rotate_database_password describe_schema run_read_query run_write_query " +
  "list_active_queries kill_query list_slow_queries get_database_metrics get_database_logs " +
  "create_backup list_backups verify_backup restore_backup delete_backup set_backup_schedule " +
  "get_backup_download_link list_volumes create_volume delete_volume browse_files list_cron_jobs " +
  "set_cron_job delete_cron_job run_command get_job_output list_packs list_invoices get_invoice " +
  "cancel_invoice change_pack get_credit_balance create_credit_invoice get_account list_api_keys " +
  "revoke_api_key list_activity"
).split(" ");

it("the assistant has these 95 tools", () => {
  expect(promised).toHaveLength(95);
  expect(Object.keys(tools).toSorted()).toEqual(promised.toSorted());
});

it.each(Object.keys(toolGroups) as ToolGroup[])("the tools of %s have their tests of effect", (group) => {
  expect(existsSync(file(group)) && readFileSync(file(group), "utf8")).toContain(`effectsOf("${group}", {`);
});

it("77 of them are held to their effect outside the record by the end-to-end tests, and 18 have none there", () => {
  const counts = Map.groupBy(Object.values(toolsHeldBy), (where) => where);
  expect(Object.fromEntries([...counts].map(([where, { length }]) => [where, length]))).toEqual({
    "chat-effects": 53,
    "chat-facts": 24,
    record: 18,
  });
  expect(Object.keys(toolsHeldBy).toSorted()).toEqual(promised.toSorted());
});

it.each(Object.keys(tools) as ToolName[])("%s belongs to a group that the model can open", (name) => {
  expect(Object.keys(toolGroups)).toContain(tools[name].group);
});

it("create_site takes what the API takes, and nothing longer", () => {
  const { input } = tools.create_site;
  const base = { name: "shop", deployType: "github", port: 3000 };
  const fits = (more: object) => input.safeParse({ ...base, ...more }).success;
  for (const [field, longest] of [
    ["name", "n".repeat(63)],
    ["githubUrl", `github.com/a/${"r".repeat(287)}`],
    ["branch", "b".repeat(200)],
    ["buildCommand", "b".repeat(2000)],
    ["startCommand", "s".repeat(2000)],
    ["dockerfile", `FROM alpine\n#${"x".repeat(99_987)}`],
  ] as const)
    expect([field, fits({ [field]: longest }), fits({ [field]: `${longest}x` })]).toEqual([
      field,
      true,
      false,
    ]);
});
