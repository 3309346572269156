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
CREATE INDEX `commands_open` ON `commands` (`site_id`) WHERE status IN ('QUEUED', 'RUNNING');--> statement-breakpoint
CREATE INDEX `commands_finished` ON `commands` (`finished_at`);--> statement-breakpoint
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
ALTER TABLE `jobs` ADD `command_id` text;