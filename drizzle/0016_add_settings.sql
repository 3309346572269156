CREATE TABLE `billing_details` (
	`account_id` text PRIMARY KEY NOT NULL,
	`details` text NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `installation_settings` (
	`id` integer PRIMARY KEY NOT NULL,
	`brand` text NOT NULL,
	`seller` text NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `invoices` ADD `parties` text;