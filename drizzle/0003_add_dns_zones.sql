CREATE TABLE `dns_zones` (
	`id` text PRIMARY KEY NOT NULL,
	`busy_until` integer NOT NULL,
	`next_at` integer NOT NULL,
	`hinted` integer DEFAULT false NOT NULL,
	`synced_at` integer,
	`record_count` integer DEFAULT 0 NOT NULL,
	`conflicts` text DEFAULT '[]' NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL,
	`error` text,
	`error_since` integer
);
--> statement-breakpoint
ALTER TABLE `hosts` ADD `ipv4` text;--> statement-breakpoint
ALTER TABLE `hosts` ADD `ipv6` text;--> statement-breakpoint
ALTER TABLE `hosts` ADD `connected_from` text;