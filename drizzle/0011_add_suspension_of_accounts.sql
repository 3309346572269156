ALTER TABLE `accounts` ADD `suspended_at` integer;--> statement-breakpoint
ALTER TABLE `accounts` ADD `suspended_for` text;--> statement-breakpoint
ALTER TABLE `accounts` ADD `released_at` integer;--> statement-breakpoint
CREATE INDEX `accounts_suspended` ON `accounts` (`suspended_at`) WHERE suspended_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `accounts_released` ON `accounts` (`released_at`) WHERE released_at IS NOT NULL;