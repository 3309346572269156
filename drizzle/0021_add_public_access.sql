ALTER TABLE `databases` ADD `public_enabled` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `databases` ADD `public_allow` text DEFAULT '[]' NOT NULL;--> statement-breakpoint
ALTER TABLE `databases` ADD `public_generation` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `databases` ADD `public_applied` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `databases` ADD `public_port` integer;--> statement-breakpoint
ALTER TABLE `databases` ADD `public_address` text;--> statement-breakpoint
ALTER TABLE `databases` ADD `public_authority` text;--> statement-breakpoint
ALTER TABLE `databases` ADD `public_ends_at` integer;--> statement-breakpoint
ALTER TABLE `databases` ADD `public_error` text;--> statement-breakpoint
ALTER TABLE `databases` ADD `public_try_at` integer;--> statement-breakpoint
CREATE UNIQUE INDEX `databases_public_port` ON `databases` (`host_id`,`public_port`) WHERE public_port IS NOT NULL;--> statement-breakpoint
CREATE INDEX `databases_public` ON `databases` (`id`) WHERE public_enabled OR public_applied < public_generation;