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
ALTER TABLE `databases` ADD `volume` text;--> statement-breakpoint
ALTER TABLE `databases` ADD `backup_schedule` text DEFAULT 'daily';--> statement-breakpoint
ALTER TABLE `databases` ADD `backup_hour_utc` integer DEFAULT 3 NOT NULL;--> statement-breakpoint
ALTER TABLE `databases` ADD `backup_keep` integer DEFAULT 7 NOT NULL;--> statement-breakpoint
ALTER TABLE `databases` ADD `next_backup_at` integer;--> statement-breakpoint
CREATE INDEX `databases_next_backup` ON `databases` (`next_backup_at`);--> statement-breakpoint
ALTER TABLE `jobs` ADD `backup_id` text;--> statement-breakpoint
CREATE INDEX `jobs_backup` ON `jobs` (`backup_id`);