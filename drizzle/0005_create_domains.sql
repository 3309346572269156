CREATE TABLE `domains` (
	`id` text PRIMARY KEY NOT NULL,
	`site_id` text NOT NULL,
	`name` text NOT NULL,
	`challenge` text NOT NULL,
	`verified_at` integer,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `domains_site` ON `domains` (`site_id`,`name`);--> statement-breakpoint
CREATE UNIQUE INDEX `domains_verified` ON `domains` (`name`) WHERE verified_at IS NOT NULL;