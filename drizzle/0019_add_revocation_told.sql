ALTER TABLE `api_keys` ADD `guard_told_at` integer;--> statement-breakpoint
CREATE INDEX `api_keys_untold` ON `api_keys` (`revoked_at`) WHERE revoked_at IS NOT NULL AND guard_told_at IS NULL;