CREATE TABLE `processor_readings` (
	`processor` text PRIMARY KEY NOT NULL,
	`events_until` integer NOT NULL,
	`read_at` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `hosts` ADD `compared_at` integer;--> statement-breakpoint
ALTER TABLE `hosts` ADD `unknown_mb` integer DEFAULT 0 NOT NULL;