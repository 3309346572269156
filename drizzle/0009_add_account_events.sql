CREATE TABLE `changes` (
	`seq` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`account_id` text NOT NULL,
	`type` text NOT NULL,
	`resource_id` text NOT NULL,
	`fields` text NOT NULL,
	`told` integer DEFAULT false NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `changes_account` ON `changes` (`account_id`,`seq`);--> statement-breakpoint
CREATE INDEX `changes_untold` ON `changes` (`told`) WHERE told = 0;--> statement-breakpoint
CREATE TABLE `followed_accounts` (
	`account_id` text PRIMARY KEY NOT NULL,
	`since_seq` integer NOT NULL,
	`until` integer NOT NULL
);
