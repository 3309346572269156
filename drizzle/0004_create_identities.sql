CREATE TABLE `identities` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`provider_id` text NOT NULL,
	`provider_account_id` text NOT NULL,
	`access_token` text,
	`refresh_token` text,
	`id_token` text,
	`access_token_expires_at` integer,
	`refresh_token_expires_at` integer,
	`scope` text,
	`password` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `identities_account` ON `identities` (`account_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `identities_provider` ON `identities` (`provider_id`,`provider_account_id`);--> statement-breakpoint
CREATE TABLE `verifications` (
	`id` text PRIMARY KEY NOT NULL,
	`identifier` text NOT NULL,
	`value` text NOT NULL,
	`expires_at` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `verifications_identifier` ON `verifications` (`identifier`);--> statement-breakpoint
CREATE TABLE `__new_sessions` (
	`id` text PRIMARY KEY NOT NULL,
	`token_hash` text NOT NULL,
	`account_id` text NOT NULL,
	`ip_address` text,
	`user_agent` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
INSERT INTO `__new_sessions`("id", "token_hash", "account_id", "ip_address", "user_agent", "created_at", "updated_at", "expires_at") SELECT 'ses_' || "token_hash", "token_hash", "account_id", NULL, NULL, "created_at", "created_at", "expires_at" FROM `sessions`;--> statement-breakpoint
DROP TABLE `sessions`;--> statement-breakpoint
ALTER TABLE `__new_sessions` RENAME TO `sessions`;--> statement-breakpoint
CREATE UNIQUE INDEX `sessions_token_hash_unique` ON `sessions` (`token_hash`);--> statement-breakpoint
CREATE INDEX `sessions_account` ON `sessions` (`account_id`);--> statement-breakpoint
INSERT INTO `identities` (`id`, `account_id`, `provider_id`, `provider_account_id`, `password`, `created_at`, `updated_at`) SELECT 'idn_' || substr(`id`, 5), `id`, 'credential', `id`, `password_hash`, `created_at`, `updated_at` FROM `accounts` WHERE `password_hash` IS NOT NULL;--> statement-breakpoint
ALTER TABLE `accounts` DROP COLUMN `password_hash`;