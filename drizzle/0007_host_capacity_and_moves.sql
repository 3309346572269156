DROP INDEX `hosts_name_unique`;--> statement-breakpoint
ALTER TABLE `hosts` ADD `offline_since` integer;--> statement-breakpoint
ALTER TABLE `hosts` ADD `disk_free_mb` integer;--> statement-breakpoint
CREATE UNIQUE INDEX `hosts_name` ON `hosts` (`name`) WHERE status <> 'REMOVED';--> statement-breakpoint
ALTER TABLE `sites` ADD `move_host_id` text;--> statement-breakpoint
ALTER TABLE `sites` ADD `leaving_host_id` text;--> statement-breakpoint
ALTER TABLE `sites` ADD `leave_at` integer;--> statement-breakpoint
CREATE INDEX `sites_move_host` ON `sites` (`move_host_id`) WHERE move_host_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX `sites_leaving_host` ON `sites` (`leaving_host_id`) WHERE leaving_host_id IS NOT NULL;