ALTER TABLE `site_volumes` ADD `backup_failures` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `site_volumes` ADD `backups_failing_since` integer;--> statement-breakpoint
ALTER TABLE `site_volumes` ADD `backup_failure_reason` text;