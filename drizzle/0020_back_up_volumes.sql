DROP INDEX `jobs_taken`;--> statement-breakpoint
ALTER TABLE `jobs` ADD `volume` text;--> statement-breakpoint
CREATE INDEX `jobs_taken` ON `jobs` (`host_id`,`leased_at`) WHERE kind IN ('site.deploy', 'database.provision', 'database.backup', 'database.verify', 'database.restore', 'volume.backup', 'volume.verify', 'volume.restore') AND leased_at IS NOT NULL;--> statement-breakpoint
ALTER TABLE `backups` ADD `consistent` integer;--> statement-breakpoint
ALTER TABLE `site_volumes` ADD `backup_schedule` text;--> statement-breakpoint
ALTER TABLE `site_volumes` ADD `backup_hour_utc` integer DEFAULT 3 NOT NULL;--> statement-breakpoint
ALTER TABLE `site_volumes` ADD `backup_keep` integer DEFAULT 7 NOT NULL;--> statement-breakpoint
ALTER TABLE `site_volumes` ADD `next_backup_at` integer;--> statement-breakpoint
ALTER TABLE `site_volumes` ADD `restore_error` text;--> statement-breakpoint
ALTER TABLE `site_volumes` ADD `mark` text;--> statement-breakpoint
CREATE INDEX `site_volumes_next_backup` ON `site_volumes` (`next_backup_at`);