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
CREATE TABLE `api_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`name` text NOT NULL,
	`hash` text NOT NULL,
	`start` text NOT NULL,
	`origin` text NOT NULL,
	`created_at` integer NOT NULL,
	`last_used_at` integer,
	`revoked_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `api_keys_hash_unique` ON `api_keys` (`hash`);--> statement-breakpoint
CREATE INDEX `api_keys_account` ON `api_keys` (`account_id`,`created_at`);--> statement-breakpoint
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
	`env_version` integer DEFAULT 0 NOT NULL,
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
CREATE UNIQUE INDEX `deployments_one_waiting` ON `deployments` (`site_id`) WHERE status = 'QUEUED';--> statement-breakpoint
CREATE UNIQUE INDEX `deployments_one_running` ON `deployments` (`site_id`) WHERE status IN ('BUILDING', 'STARTING');--> statement-breakpoint
CREATE TABLE `hosts` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`status` text DEFAULT 'ACTIVE' NOT NULL,
	`region` text,
	`token_hash` text NOT NULL,
	`cpu_count` real,
	`memory_mb` integer,
	`agent_version` text,
	`created_at` integer NOT NULL,
	`connected_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `hosts_name_unique` ON `hosts` (`name`);--> statement-breakpoint
CREATE UNIQUE INDEX `hosts_token_hash_unique` ON `hosts` (`token_hash`);--> statement-breakpoint
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
	`created_at` integer NOT NULL,
	`due_at` integer NOT NULL,
	`paid_at` integer,
	`settlement_mark` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `invoices_token_unique` ON `invoices` (`token`);--> statement-breakpoint
CREATE INDEX `invoices_account` ON `invoices` (`account_id`,`id`);--> statement-breakpoint
CREATE INDEX `invoices_resource` ON `invoices` (`resource_id`);--> statement-breakpoint
CREATE INDEX `invoices_settlement` ON `invoices` (`settlement_mark`);--> statement-breakpoint
CREATE TABLE `jobs` (
	`seq` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`kind` text NOT NULL,
	`status` text NOT NULL,
	`host_id` text,
	`site_id` text NOT NULL,
	`account_id` text NOT NULL,
	`deployment_id` text,
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
CREATE INDEX `jobs_open` ON `jobs` (`host_id`,`seq`) WHERE status IN ('QUEUED', 'LEASED');--> statement-breakpoint
CREATE INDEX `jobs_deadline` ON `jobs` (`deadline_at`) WHERE status IN ('QUEUED', 'LEASED');--> statement-breakpoint
CREATE INDEX `jobs_site` ON `jobs` (`site_id`,`seq`);--> statement-breakpoint
CREATE INDEX `jobs_mark` ON `jobs` (`mark`);--> statement-breakpoint
CREATE UNIQUE INDEX `jobs_one_leased` ON `jobs` (`site_id`) WHERE status = 'LEASED';--> statement-breakpoint
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
	`active` integer DEFAULT true NOT NULL
);
--> statement-breakpoint
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
CREATE TABLE `site_env_versions` (
	`site_id` text NOT NULL,
	`version` integer NOT NULL,
	`entries` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `site_env_versions_key` ON `site_env_versions` (`site_id`,`version`);--> statement-breakpoint
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
	`dockerfile` text,
	`image` text,
	`port` integer NOT NULL,
	`build_command` text,
	`start_command` text,
	`root_dir` text,
	`dockerfile_path` text,
	`health_check_path` text,
	`region` text,
	`pack_id` text NOT NULL,
	`billing_term` integer NOT NULL,
	`slug` text NOT NULL,
	`host_id` text,
	`webhook_hash` text NOT NULL,
	`webhook_generation` integer DEFAULT 1 NOT NULL,
	`current_deployment_id` text,
	`paid_until` integer,
	`mark` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `sites_slug_unique` ON `sites` (`slug`);--> statement-breakpoint
CREATE UNIQUE INDEX `sites_webhook_hash_unique` ON `sites` (`webhook_hash`);--> statement-breakpoint
CREATE INDEX `sites_account` ON `sites` (`account_id`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `sites_account_name` ON `sites` (`account_id`,`name`);--> statement-breakpoint
CREATE INDEX `sites_host` ON `sites` (`host_id`);