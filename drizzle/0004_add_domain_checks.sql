ALTER TABLE `domains` ADD `redirect_to` text;--> statement-breakpoint
ALTER TABLE `domains` ADD `state` text DEFAULT 'VERIFIED' NOT NULL;--> statement-breakpoint
ALTER TABLE `domains` ADD `problems` text DEFAULT '[]' NOT NULL;--> statement-breakpoint
ALTER TABLE `domains` ADD `certificate` text;--> statement-breakpoint
ALTER TABLE `domains` ADD `checked_at` integer;--> statement-breakpoint
ALTER TABLE `domains` ADD `next_check_at` integer;--> statement-breakpoint
ALTER TABLE `domains` ADD `looks` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `domains` ADD `lost_since` integer;--> statement-breakpoint
CREATE INDEX `domains_next_check` ON `domains` (`next_check_at`);