ALTER TABLE `sites` ADD `limits_pack_id` text;--> statement-breakpoint
CREATE INDEX `sites_limits_pack` ON `sites` (`limits_pack_id`) WHERE limits_pack_id IS NOT NULL;