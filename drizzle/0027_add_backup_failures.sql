ALTER TABLE `backups` ADD `shrunk_from` text;--> statement-breakpoint
ALTER TABLE `databases` ADD `backup_failures` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `databases` ADD `backups_failing_since` integer;--> statement-breakpoint
ALTER TABLE `databases` ADD `backup_failure_reason` text;--> statement-breakpoint
CREATE INDEX `databases_backups_failing` ON `databases` (`id`) WHERE backup_failures > 0;