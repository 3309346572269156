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
	`paid_until` integer,
	`mark` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `databases_account` ON `databases` (`account_id`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `databases_account_name` ON `databases` (`account_id`,`name`);--> statement-breakpoint
CREATE INDEX `databases_status` ON `databases` (`status`);--> statement-breakpoint
CREATE INDEX `databases_rotating` ON `databases` (`id`) WHERE previous_password_sealed IS NOT NULL;--> statement-breakpoint
CREATE INDEX `databases_host` ON `databases` (`host_id`);--> statement-breakpoint
DROP INDEX `commands_open`;--> statement-breakpoint
CREATE INDEX `commands_open` ON `commands` (`status`,`site_id`);--> statement-breakpoint
CREATE TABLE `__new_jobs` (
	`seq` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`kind` text NOT NULL,
	`status` text NOT NULL,
	`host_id` text,
	`lane` text NOT NULL,
	`site_id` text,
	`database_id` text,
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
INSERT INTO `__new_jobs`("seq", "id", "kind", "status", "host_id", "lane", "site_id", "database_id", "account_id", "deployment_id", "command_id", "env_version", "attempt", "cancel_requested", "deadline_at", "mark", "error", "created_at", "leased_at", "finished_at") SELECT "seq", "id", "kind", "status", "host_id", "lane", "site_id", NULL, "account_id", "deployment_id", "command_id", "env_version", "attempt", "cancel_requested", "deadline_at", "mark", "error", "created_at", "leased_at", "finished_at" FROM `jobs`;--> statement-breakpoint
DROP TABLE `jobs`;--> statement-breakpoint
ALTER TABLE `__new_jobs` RENAME TO `jobs`;--> statement-breakpoint
CREATE UNIQUE INDEX `jobs_id_unique` ON `jobs` (`id`);--> statement-breakpoint
CREATE INDEX `jobs_host` ON `jobs` (`status`,`host_id`,`seq`);--> statement-breakpoint
CREATE INDEX `jobs_deadline` ON `jobs` (`status`,`deadline_at`);--> statement-breakpoint
CREATE INDEX `jobs_lane` ON `jobs` (`lane`,`status`,`seq`);--> statement-breakpoint
CREATE INDEX `jobs_site` ON `jobs` (`site_id`,`status`);--> statement-breakpoint
CREATE INDEX `jobs_database` ON `jobs` (`database_id`,`status`);--> statement-breakpoint
CREATE INDEX `jobs_deployment` ON `jobs` (`deployment_id`,`seq`);--> statement-breakpoint
CREATE INDEX `jobs_mark` ON `jobs` (`mark`);--> statement-breakpoint
CREATE UNIQUE INDEX `jobs_one_leased` ON `jobs` (`lane`) WHERE status = 'LEASED';