CREATE TABLE `site_volumes` (
	`site_id` text NOT NULL,
	`name` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `site_volumes_key` ON `site_volumes` (`site_id`,`name`);--> statement-breakpoint
ALTER TABLE `sites` ADD `replicas` integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE `sites` ADD `volumes` text DEFAULT '[]' NOT NULL;