CREATE TABLE `accounts` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`email` text NOT NULL,
	`email_verified` integer DEFAULT false NOT NULL,
	`image` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`role` text DEFAULT 'user' NOT NULL,
	`plan` text DEFAULT 'free' NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `accounts_email_unique` ON `accounts` (`email`);--> statement-breakpoint
CREATE TABLE `activity` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text,
	`actor` text NOT NULL,
	`actor_id` text,
	`operation` text NOT NULL,
	`resource_id` text,
	`arguments` text NOT NULL,
	`outcome` text NOT NULL,
	`request_id` text,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `activity_account` ON `activity` (`account_id`,`id`);--> statement-breakpoint
CREATE INDEX `activity_resource` ON `activity` (`resource_id`,`id`);--> statement-breakpoint
CREATE TABLE `api_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`name` text NOT NULL,
	`hash` text NOT NULL,
	`start` text NOT NULL,
	`origin` text NOT NULL,
	`created_at` integer NOT NULL,
	`last_used_at` integer,
	`revoked_at` integer,
	`guard_told_at` integer,
	`untold_change` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `api_keys_hash_unique` ON `api_keys` (`hash`);--> statement-breakpoint
CREATE INDEX `api_keys_account` ON `api_keys` (`account_id`,`created_at`);--> statement-breakpoint
CREATE INDEX `api_keys_untold_change` ON `api_keys` (`untold_change`) WHERE untold_change IS NOT NULL;--> statement-breakpoint
CREATE INDEX `api_keys_untold` ON `api_keys` (`revoked_at`) WHERE revoked_at IS NOT NULL AND guard_told_at IS NULL;--> statement-breakpoint
CREATE TABLE `backups` (
	`id` text PRIMARY KEY NOT NULL,
	`database_id` text NOT NULL,
	`account_id` text NOT NULL,
	`status` text NOT NULL,
	`trigger` text NOT NULL,
	`name` text NOT NULL,
	`database_name` text NOT NULL,
	`type` text NOT NULL,
	`version` text,
	`image` text NOT NULL,
	`pack_id` text NOT NULL,
	`host_id` text,
	`attempt` integer,
	`upload_id` text,
	`size_bytes` integer,
	`sha256` text,
	`fingerprint_sha256` text,
	`tables` integer,
	`rows` integer,
	`shrunk_from` text,
	`error` text,
	`verifications` integer DEFAULT 0 NOT NULL,
	`mark` text,
	`created_at` integer NOT NULL,
	`finished_at` integer,
	`verified_at` integer,
	`expires_at` integer,
	`removed_at` integer
);
--> statement-breakpoint
CREATE INDEX `backups_database` ON `backups` (`database_id`,`id`);--> statement-breakpoint
CREATE INDEX `backups_account` ON `backups` (`account_id`,`id`);--> statement-breakpoint
CREATE INDEX `backups_status` ON `backups` (`status`,`created_at`);--> statement-breakpoint
CREATE INDEX `backups_expiry` ON `backups` (`expires_at`);--> statement-breakpoint
CREATE INDEX `backups_removed` ON `backups` (`removed_at`);--> statement-breakpoint
CREATE UNIQUE INDEX `backups_one_running` ON `backups` (`database_id`) WHERE status = 'RUNNING' AND "trigger" IN ('api', 'schedule');--> statement-breakpoint
CREATE TABLE `checkouts` (
	`id` text PRIMARY KEY NOT NULL,
	`invoice_id` text NOT NULL,
	`number` integer NOT NULL,
	`processor` text NOT NULL,
	`session_id` text,
	`url` text,
	`status` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`check_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `checkouts_number` ON `checkouts` (`invoice_id`,`number`);--> statement-breakpoint
CREATE UNIQUE INDEX `checkouts_one_open` ON `checkouts` (`invoice_id`) WHERE status IN ('opening', 'open', 'processing');--> statement-breakpoint
CREATE UNIQUE INDEX `checkouts_session` ON `checkouts` (`processor`,`session_id`);--> statement-breakpoint
CREATE INDEX `checkouts_check` ON `checkouts` (`status`,`check_at`);--> statement-breakpoint
CREATE TABLE `commands` (
	`id` text PRIMARY KEY NOT NULL,
	`site_id` text NOT NULL,
	`account_id` text NOT NULL,
	`command` text NOT NULL,
	`timeout_seconds` integer NOT NULL,
	`status` text NOT NULL,
	`trigger` text NOT NULL,
	`schedule_id` text,
	`deployment_id` text,
	`exit_code` integer,
	`error` text,
	`created_at` integer NOT NULL,
	`started_at` integer,
	`finished_at` integer
);
--> statement-breakpoint
CREATE INDEX `commands_site` ON `commands` (`site_id`,`id`);--> statement-breakpoint
CREATE INDEX `commands_schedule` ON `commands` (`schedule_id`,`id`);--> statement-breakpoint
CREATE INDEX `commands_open` ON `commands` (`status`,`site_id`);--> statement-breakpoint
CREATE INDEX `commands_finished` ON `commands` (`finished_at`);--> statement-breakpoint
CREATE TABLE `conversations` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`title` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `conversations_account` ON `conversations` (`account_id`,`id`);--> statement-breakpoint
CREATE INDEX `conversations_updated` ON `conversations` (`updated_at`);--> statement-breakpoint
CREATE TABLE `credit_packages` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`credits` integer NOT NULL,
	`price_cents` integer NOT NULL,
	`currency` text DEFAULT 'usd' NOT NULL,
	`active` integer DEFAULT true NOT NULL
);
--> statement-breakpoint
CREATE TABLE `credit_purchases` (
	`invoice_id` text PRIMARY KEY NOT NULL,
	`package_id` text NOT NULL,
	`credits` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `database_links` (
	`database_id` text NOT NULL,
	`site_id` text NOT NULL,
	`variable` text NOT NULL,
	`offered_generation` integer,
	`generation` integer,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `database_links_key` ON `database_links` (`database_id`,`site_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `database_links_variable` ON `database_links` (`site_id`,`variable`);--> statement-breakpoint
CREATE TABLE `databases` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`name` text NOT NULL,
	`type` text NOT NULL,
	`status` text NOT NULL,
	`wanted` text DEFAULT 'RUNNING' NOT NULL,
	`image` text NOT NULL,
	`version` text,
	`error` text,
	`disk_mb` integer,
	`pack_id` text NOT NULL,
	`billing_term` integer NOT NULL,
	`region` text,
	`host_id` text,
	`database_name` text NOT NULL,
	`admin_password_sealed` text NOT NULL,
	`generation` integer DEFAULT 1 NOT NULL,
	`password_sealed` text NOT NULL,
	`next_password_sealed` text,
	`previous_password_sealed` text,
	`volume` text,
	`backup_schedule` text DEFAULT 'daily',
	`backup_hour_utc` integer DEFAULT 3 NOT NULL,
	`backup_keep` integer DEFAULT 7 NOT NULL,
	`next_backup_at` integer,
	`backup_failures` integer DEFAULT 0 NOT NULL,
	`backups_failing_since` integer,
	`backup_failure_reason` text,
	`public_enabled` integer DEFAULT false NOT NULL,
	`public_allow` text DEFAULT '[]' NOT NULL,
	`public_generation` integer DEFAULT 0 NOT NULL,
	`public_applied` integer DEFAULT 0 NOT NULL,
	`public_port` integer,
	`public_address` text,
	`public_authority` text,
	`public_ends_at` integer,
	`public_error` text,
	`public_try_at` integer,
	`paid_until` integer,
	`suspended_at` integer,
	`next_pack_id` text,
	`next_pack_at` integer,
	`next_billing_term` integer,
	`pack_changed_at` integer,
	`mark` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `databases_public_port` ON `databases` (`host_id`,`public_port`) WHERE public_port IS NOT NULL;--> statement-breakpoint
CREATE INDEX `databases_public` ON `databases` (`id`) WHERE public_enabled OR public_applied < public_generation;--> statement-breakpoint
CREATE INDEX `databases_term` ON `databases` (`paid_until`);--> statement-breakpoint
CREATE INDEX `databases_next_pack` ON `databases` (`next_pack_at`) WHERE next_pack_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `databases_account` ON `databases` (`account_id`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `databases_account_name` ON `databases` (`account_id`,`name`);--> statement-breakpoint
CREATE INDEX `databases_status` ON `databases` (`status`);--> statement-breakpoint
CREATE INDEX `databases_rotating` ON `databases` (`id`) WHERE previous_password_sealed IS NOT NULL;--> statement-breakpoint
CREATE INDEX `databases_host` ON `databases` (`host_id`);--> statement-breakpoint
CREATE INDEX `databases_next_backup` ON `databases` (`next_backup_at`);--> statement-breakpoint
CREATE INDEX `databases_backups_failing` ON `databases` (`id`) WHERE backup_failures > 0;--> statement-breakpoint
CREATE TABLE `deployments` (
	`id` text PRIMARY KEY NOT NULL,
	`site_id` text NOT NULL,
	`account_id` text NOT NULL,
	`number` integer NOT NULL,
	`status` text NOT NULL,
	`trigger` text NOT NULL,
	`commit_sha` text,
	`commit_message` text,
	`image_digest` text,
	`image_id` text,
	`build_key` text,
	`env_version` integer DEFAULT 0 NOT NULL,
	`run` text,
	`build` text,
	`rollback_of` text,
	`rebuild` integer DEFAULT false NOT NULL,
	`error` text,
	`clone_ms` integer,
	`build_ms` integer,
	`start_ms` integer,
	`swap_ms` integer,
	`created_at` integer NOT NULL,
	`started_at` integer,
	`finished_at` integer
);
--> statement-breakpoint
CREATE INDEX `deployments_site` ON `deployments` (`site_id`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `deployments_number` ON `deployments` (`site_id`,`number`);--> statement-breakpoint
CREATE INDEX `deployments_status` ON `deployments` (`site_id`,`status`);--> statement-breakpoint
CREATE INDEX `deployments_kept` ON `deployments` (`site_id`,`number`) WHERE status IN ('LIVE', 'SUPERSEDED', 'BUILDING', 'STARTING');--> statement-breakpoint
CREATE INDEX `deployments_build` ON `deployments` (`site_id`) WHERE build IS NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `deployments_one_waiting` ON `deployments` (`site_id`) WHERE status = 'QUEUED';--> statement-breakpoint
CREATE UNIQUE INDEX `deployments_one_running` ON `deployments` (`site_id`) WHERE status IN ('BUILDING', 'STARTING');--> statement-breakpoint
CREATE TABLE `disputes` (
	`id` text PRIMARY KEY NOT NULL,
	`payment_reference` text NOT NULL,
	`amount_cents` integer NOT NULL,
	`currency` text NOT NULL,
	`status` text NOT NULL,
	`reason` text NOT NULL,
	`told_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `domains` (
	`id` text PRIMARY KEY NOT NULL,
	`site_id` text NOT NULL,
	`name` text NOT NULL,
	`challenge` text NOT NULL,
	`verified_at` integer,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `domains_site` ON `domains` (`site_id`,`name`);--> statement-breakpoint
CREATE UNIQUE INDEX `domains_verified` ON `domains` (`name`) WHERE verified_at IS NOT NULL;--> statement-breakpoint
CREATE TABLE `hosts` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`status` text DEFAULT 'ACTIVE' NOT NULL,
	`region` text,
	`token_hash` text NOT NULL,
	`cpu_count` real,
	`memory_mb` integer,
	`slots` integer,
	`agent_version` text,
	`created_at` integer NOT NULL,
	`connected_at` integer,
	`offline_since` integer,
	`disk_free_mb` integer,
	`compared_at` integer,
	`unknown_mb` integer DEFAULT 0 NOT NULL,
	`ingress_replaced_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `hosts_token_hash_unique` ON `hosts` (`token_hash`);--> statement-breakpoint
CREATE UNIQUE INDEX `hosts_name` ON `hosts` (`name`) WHERE status <> 'REMOVED';--> statement-breakpoint
CREATE TABLE `idempotent_requests` (
	`id` text PRIMARY KEY NOT NULL,
	`body_hash` text NOT NULL,
	`status` integer,
	`response_sealed` text,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `idempotent_requests_created` ON `idempotent_requests` (`created_at`);--> statement-breakpoint
CREATE TABLE `identities` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`provider_id` text NOT NULL,
	`provider_account_id` text NOT NULL,
	`access_token` text,
	`refresh_token` text,
	`id_token` text,
	`access_token_expires_at` integer,
	`refresh_token_expires_at` integer,
	`scope` text,
	`password` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `identities_account` ON `identities` (`account_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `identities_provider` ON `identities` (`provider_id`,`provider_account_id`);--> statement-breakpoint
CREATE TABLE `invoices` (
	`id` text PRIMARY KEY NOT NULL,
	`token` text NOT NULL,
	`account_id` text NOT NULL,
	`kind` text NOT NULL,
	`status` text NOT NULL,
	`amount_cents` integer NOT NULL,
	`currency` text NOT NULL,
	`lines` text NOT NULL,
	`resource_id` text,
	`term_months` integer,
	`pack_id` text,
	`period_end` integer,
	`created_at` integer NOT NULL,
	`due_at` integer NOT NULL,
	`paid_at` integer,
	`settlement_mark` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `invoices_token_unique` ON `invoices` (`token`);--> statement-breakpoint
CREATE INDEX `invoices_account` ON `invoices` (`account_id`,`id`);--> statement-breakpoint
CREATE INDEX `invoices_resource` ON `invoices` (`resource_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `invoices_renewal` ON `invoices` (`resource_id`,`period_end`) WHERE kind = 'renewal' AND status IN ('unpaid', 'paid');--> statement-breakpoint
CREATE UNIQUE INDEX `invoices_one_to_pay` ON `invoices` (`resource_id`) WHERE kind IN ('renewal', 'change') AND status = 'unpaid';--> statement-breakpoint
CREATE INDEX `invoices_due` ON `invoices` (`status`,`due_at`);--> statement-breakpoint
CREATE INDEX `invoices_settlement` ON `invoices` (`settlement_mark`);--> statement-breakpoint
CREATE TABLE `jobs` (
	`seq` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`kind` text NOT NULL,
	`status` text NOT NULL,
	`host_id` text,
	`lane` text NOT NULL,
	`site_id` text,
	`database_id` text,
	`backup_id` text,
	`account_id` text NOT NULL,
	`deployment_id` text,
	`command_id` text,
	`env_version` integer,
	`attempt` integer DEFAULT 0 NOT NULL,
	`cancel_requested` integer DEFAULT false NOT NULL,
	`deadline_at` integer NOT NULL,
	`mark` text,
	`error` text,
	`created_at` integer NOT NULL,
	`leased_at` integer,
	`finished_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `jobs_id_unique` ON `jobs` (`id`);--> statement-breakpoint
CREATE INDEX `jobs_host` ON `jobs` (`status`,`host_id`,`seq`);--> statement-breakpoint
CREATE INDEX `jobs_account` ON `jobs` (`status`,`host_id`,`account_id`,`seq`);--> statement-breakpoint
CREATE INDEX `jobs_taken` ON `jobs` (`host_id`,`leased_at`) WHERE kind IN ('site.deploy', 'database.provision', 'database.backup', 'database.verify', 'database.restore') AND leased_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `jobs_taken_commands` ON `jobs` (`host_id`,`leased_at`) WHERE kind = 'site.command' AND leased_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `jobs_deadline` ON `jobs` (`status`,`deadline_at`);--> statement-breakpoint
CREATE INDEX `jobs_lane` ON `jobs` (`lane`,`status`,`seq`);--> statement-breakpoint
CREATE INDEX `jobs_site` ON `jobs` (`site_id`,`status`);--> statement-breakpoint
CREATE INDEX `jobs_database` ON `jobs` (`database_id`,`status`);--> statement-breakpoint
CREATE INDEX `jobs_backup` ON `jobs` (`backup_id`);--> statement-breakpoint
CREATE INDEX `jobs_deployment` ON `jobs` (`deployment_id`,`seq`);--> statement-breakpoint
CREATE INDEX `jobs_evicted` ON `jobs` (`site_id`,`seq`) WHERE kind = 'site.evict';--> statement-breakpoint
CREATE INDEX `jobs_mark` ON `jobs` (`mark`);--> statement-breakpoint
CREATE UNIQUE INDEX `jobs_one_leased` ON `jobs` (`lane`) WHERE status = 'LEASED';--> statement-breakpoint
CREATE TABLE `ledger_accounts` (
	`id` text PRIMARY KEY NOT NULL,
	`balance` integer DEFAULT 0 NOT NULL,
	`held` integer DEFAULT 0 NOT NULL,
	CONSTRAINT "ledger_accounts_covered" CHECK(id LIKE 'system:%' OR (held >= 0 AND balance >= held)),
	CONSTRAINT "ledger_accounts_integers" CHECK(typeof(balance) = 'integer' AND typeof(held) = 'integer')
);
--> statement-breakpoint
CREATE TABLE `ledger_holds` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`amount` integer NOT NULL,
	`status` text NOT NULL,
	`mark` text,
	`created_at` integer NOT NULL,
	`expires_at` integer,
	CONSTRAINT "ledger_holds_amount" CHECK(typeof(amount) = 'integer' AND amount > 0)
);
--> statement-breakpoint
CREATE INDEX `ledger_holds_expiry` ON `ledger_holds` (`status`,`expires_at`);--> statement-breakpoint
CREATE TABLE `ledger_transfers` (
	`seq` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`debit_id` text NOT NULL,
	`credit_id` text NOT NULL,
	`amount` integer NOT NULL,
	`type` text NOT NULL,
	`reference` text NOT NULL,
	`created_at` integer NOT NULL,
	CONSTRAINT "ledger_transfers_amount" CHECK(typeof(amount) = 'integer' AND amount > 0),
	CONSTRAINT "ledger_transfers_ends" CHECK(debit_id <> credit_id)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `ledger_transfers_id_unique` ON `ledger_transfers` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `ledger_transfers_reference` ON `ledger_transfers` (`type`,`reference`);--> statement-breakpoint
CREATE INDEX `ledger_transfers_debit` ON `ledger_transfers` (`debit_id`,`seq`);--> statement-breakpoint
CREATE INDEX `ledger_transfers_credit` ON `ledger_transfers` (`credit_id`,`seq`);--> statement-breakpoint
CREATE TABLE `mails` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`subject` text NOT NULL,
	`text` text NOT NULL,
	`created_at` integer NOT NULL,
	`try_at` integer NOT NULL,
	`sent_at` integer
);
--> statement-breakpoint
CREATE INDEX `mails_try` ON `mails` (`sent_at`,`try_at`);--> statement-breakpoint
CREATE INDEX `mails_created` ON `mails` (`created_at`);--> statement-breakpoint
CREATE TABLE `packs` (
	`id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`name` text NOT NULL,
	`price_cents` integer NOT NULL,
	`currency` text DEFAULT 'usd' NOT NULL,
	`memory_mb` integer NOT NULL,
	`cpu_milli` integer NOT NULL,
	`pids` integer NOT NULL,
	`disk_gb` integer NOT NULL,
	`active` integer DEFAULT true NOT NULL,
	`discounts` text DEFAULT '{}' NOT NULL
);
--> statement-breakpoint
CREATE TABLE `payment_flags` (
	`id` text PRIMARY KEY NOT NULL,
	`reason` text NOT NULL,
	`reference` text NOT NULL,
	`invoice_id` text,
	`amount_cents` integer,
	`currency` text,
	`created_at` integer NOT NULL,
	`resolved_at` integer,
	`resolved_by` text,
	`resolution` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `payment_flags_subject` ON `payment_flags` (`reason`,`reference`);--> statement-breakpoint
CREATE INDEX `payment_flags_invoice` ON `payment_flags` (`invoice_id`) WHERE resolved_at IS NULL;--> statement-breakpoint
CREATE TABLE `payments` (
	`id` text PRIMARY KEY NOT NULL,
	`invoice_id` text NOT NULL,
	`processor` text NOT NULL,
	`reference` text NOT NULL,
	`amount_cents` integer NOT NULL,
	`currency` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `payments_reference` ON `payments` (`processor`,`reference`);--> statement-breakpoint
CREATE INDEX `payments_invoice` ON `payments` (`invoice_id`);--> statement-breakpoint
CREATE TABLE `processor_events` (
	`id` text PRIMARY KEY NOT NULL,
	`type` text NOT NULL,
	`body` text NOT NULL,
	`outcome` text NOT NULL,
	`received_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `processor_readings` (
	`processor` text PRIMARY KEY NOT NULL,
	`events_until` integer NOT NULL,
	`read_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `refunds` (
	`id` text PRIMARY KEY NOT NULL,
	`invoice_id` text NOT NULL,
	`payment_reference` text NOT NULL,
	`reference` text,
	`amount_cents` integer NOT NULL,
	`status` text NOT NULL,
	`hold_id` text,
	`missing_credits` integer DEFAULT 0 NOT NULL,
	`error` text,
	`mark` text,
	`created_by` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `refunds_one` ON `refunds` (`invoice_id`) WHERE status <> 'failed';--> statement-breakpoint
CREATE INDEX `refunds_status` ON `refunds` (`status`);--> statement-breakpoint
CREATE TABLE `schedules` (
	`id` text PRIMARY KEY NOT NULL,
	`site_id` text NOT NULL,
	`account_id` text NOT NULL,
	`name` text NOT NULL,
	`cron` text NOT NULL,
	`command` text NOT NULL,
	`timeout_seconds` integer NOT NULL,
	`enabled` integer NOT NULL,
	`next_run_at` integer,
	`skipped_runs` integer DEFAULT 0 NOT NULL,
	`last_skipped_at` integer,
	`mark` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `schedules_site_name` ON `schedules` (`site_id`,`name`);--> statement-breakpoint
CREATE INDEX `schedules_due` ON `schedules` (`next_run_at`);--> statement-breakpoint
CREATE INDEX `schedules_account` ON `schedules` (`account_id`);--> statement-breakpoint
CREATE INDEX `schedules_unset` ON `schedules` (`site_id`) WHERE enabled AND next_run_at IS NULL;--> statement-breakpoint
CREATE TABLE `sessions` (
	`id` text PRIMARY KEY NOT NULL,
	`token_hash` text NOT NULL,
	`account_id` text NOT NULL,
	`ip_address` text,
	`user_agent` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `sessions_token_hash_unique` ON `sessions` (`token_hash`);--> statement-breakpoint
CREATE INDEX `sessions_account` ON `sessions` (`account_id`);--> statement-breakpoint
CREATE TABLE `site_env_versions` (
	`site_id` text NOT NULL,
	`version` integer NOT NULL,
	`entries` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `site_env_versions_key` ON `site_env_versions` (`site_id`,`version`);--> statement-breakpoint
CREATE TABLE `site_volumes` (
	`site_id` text NOT NULL,
	`name` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `site_volumes_key` ON `site_volumes` (`site_id`,`name`);--> statement-breakpoint
CREATE TABLE `sites` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`name` text NOT NULL,
	`status` text NOT NULL,
	`wanted` text DEFAULT 'RUNNING' NOT NULL,
	`serving` integer DEFAULT false NOT NULL,
	`deploy_type` text NOT NULL,
	`github_url` text,
	`branch` text,
	`git_token_sealed` text,
	`submodules` integer DEFAULT false NOT NULL,
	`lfs` integer DEFAULT false NOT NULL,
	`dockerfile` text,
	`image` text,
	`registry_username` text,
	`registry_password_sealed` text,
	`port` integer NOT NULL,
	`build_command` text,
	`start_command` text,
	`release_command` text,
	`start_timeout_seconds` integer,
	`root_dir` text,
	`dockerfile_path` text,
	`builder` text,
	`install_command` text,
	`output_dir` text,
	`single_page` integer,
	`language_version` text,
	`health_check_path` text,
	`replicas` integer DEFAULT 1 NOT NULL,
	`volumes` text DEFAULT '[]' NOT NULL,
	`region` text,
	`pack_id` text NOT NULL,
	`billing_term` integer NOT NULL,
	`slug` text NOT NULL,
	`host_id` text,
	`reserved` integer DEFAULT true NOT NULL,
	`move_host_id` text,
	`leaving_host_id` text,
	`leave_at` integer,
	`webhook_hash` text NOT NULL,
	`webhook_generation` integer DEFAULT 1 NOT NULL,
	`current_deployment_id` text,
	`paid_until` integer,
	`suspended_at` integer,
	`next_pack_id` text,
	`next_pack_at` integer,
	`next_billing_term` integer,
	`pack_changed_at` integer,
	`mark` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `sites_slug_unique` ON `sites` (`slug`);--> statement-breakpoint
CREATE UNIQUE INDEX `sites_webhook_hash_unique` ON `sites` (`webhook_hash`);--> statement-breakpoint
CREATE INDEX `sites_term` ON `sites` (`paid_until`);--> statement-breakpoint
CREATE INDEX `sites_next_pack` ON `sites` (`next_pack_at`) WHERE next_pack_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `sites_account` ON `sites` (`account_id`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `sites_account_name` ON `sites` (`account_id`,`name`);--> statement-breakpoint
CREATE INDEX `sites_status` ON `sites` (`status`);--> statement-breakpoint
CREATE INDEX `sites_host` ON `sites` (`host_id`);--> statement-breakpoint
CREATE INDEX `sites_move_host` ON `sites` (`move_host_id`) WHERE move_host_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX `sites_leaving_host` ON `sites` (`leaving_host_id`) WHERE leaving_host_id IS NOT NULL;--> statement-breakpoint
CREATE TABLE `test_sessions` (
	`id` text PRIMARY KEY NOT NULL,
	`invoice_id` text NOT NULL,
	`amount_cents` integer NOT NULL,
	`currency` text NOT NULL,
	`return_url` text NOT NULL,
	`status` text NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `timer_runs` (
	`id` integer PRIMARY KEY NOT NULL,
	`ran_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `verifications` (
	`id` text PRIMARY KEY NOT NULL,
	`identifier` text NOT NULL,
	`value` text NOT NULL,
	`expires_at` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `verifications_identifier` ON `verifications` (`identifier`);--> statement-breakpoint
-- Balances follow the transfers, by nobody's discipline but the database's own.
CREATE TRIGGER `ledger_transfers_apply` AFTER INSERT ON `ledger_transfers` BEGIN
  INSERT INTO ledger_accounts (id) VALUES (NEW.credit_id), (NEW.debit_id) ON CONFLICT (id) DO NOTHING;
  UPDATE ledger_accounts SET balance = balance + NEW.amount WHERE id = NEW.credit_id;
  UPDATE ledger_accounts SET balance = balance - NEW.amount WHERE id = NEW.debit_id;
END;--> statement-breakpoint
CREATE TRIGGER `ledger_transfers_no_update` BEFORE UPDATE ON `ledger_transfers` BEGIN
  SELECT RAISE(ABORT, 'The ledger is append-only');
END;--> statement-breakpoint
CREATE TRIGGER `ledger_transfers_no_delete` BEFORE DELETE ON `ledger_transfers` BEGIN
  SELECT RAISE(ABORT, 'The ledger is append-only');
END;--> statement-breakpoint
CREATE TRIGGER `ledger_accounts_no_delete` BEFORE DELETE ON `ledger_accounts` BEGIN
  SELECT RAISE(ABORT, 'The ledger is append-only');
END;--> statement-breakpoint
CREATE TRIGGER `ledger_holds_open` AFTER INSERT ON `ledger_holds` BEGIN
  INSERT INTO ledger_accounts (id) VALUES (NEW.account_id) ON CONFLICT (id) DO NOTHING;
  UPDATE ledger_accounts SET held = held + NEW.amount WHERE id = NEW.account_id;
END;--> statement-breakpoint
CREATE TRIGGER `ledger_holds_once` BEFORE UPDATE ON `ledger_holds`
WHEN OLD.status <> 'open' OR NEW.amount <> OLD.amount OR NEW.account_id <> OLD.account_id BEGIN
  SELECT RAISE(ABORT, 'A hold ends once');
END;--> statement-breakpoint
CREATE TRIGGER `ledger_holds_end` AFTER UPDATE ON `ledger_holds` WHEN NEW.status <> 'open' BEGIN
  UPDATE ledger_accounts SET held = held - OLD.amount WHERE id = OLD.account_id;
END;--> statement-breakpoint
CREATE TRIGGER `ledger_holds_no_delete` BEFORE DELETE ON `ledger_holds` BEGIN
  SELECT RAISE(ABORT, 'The ledger is append-only');
END;--> statement-breakpoint
CREATE TRIGGER `processor_events_no_delete` BEFORE DELETE ON `processor_events` BEGIN
  SELECT RAISE(ABORT, 'Event ids are kept for ever');
END;--> statement-breakpoint
CREATE TRIGGER `payments_no_delete` BEFORE DELETE ON `payments` BEGIN
  SELECT RAISE(ABORT, 'Payments are kept for ever');
END;--> statement-breakpoint
-- The credit packages a new installation offers; the operator changes them at will.
INSERT INTO credit_packages (id, name, credits, price_cents, currency, active) VALUES
  ('cpk_001k0000000000000000000001', 'Small', 500, 500, 'usd', 1),
  ('cpk_001k0000000000000000000002', 'Medium', 2200, 2000, 'usd', 1),
  ('cpk_001k0000000000000000000003', 'Large', 6000, 5000, 'usd', 1);--> statement-breakpoint
-- The packs a new installation offers; the operator changes them at will.
INSERT INTO packs (id, kind, name, price_cents, currency, memory_mb, cpu_milli, pids, disk_gb, active) VALUES
  ('pack_001k0000000000000000000001', 'site', 'Starter', 500, 'usd', 256, 500, 256, 2, 1),
  ('pack_001k0000000000000000000002', 'site', 'Standard', 1200, 'usd', 512, 1000, 512, 5, 1),
  ('pack_001k0000000000000000000003', 'site', 'Pro', 2900, 'usd', 2048, 2000, 1024, 20, 1),
  ('pack_001k0000000000000000000011', 'database', 'Starter', 700, 'usd', 256, 500, 256, 5, 1),
  ('pack_001k0000000000000000000012', 'database', 'Standard', 1900, 'usd', 1024, 1000, 512, 20, 1),
  ('pack_001k0000000000000000000013', 'database', 'Pro', 4900, 'usd', 4096, 2000, 1024, 80, 1);
