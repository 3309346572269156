CREATE TABLE `peer_authorities` (
	`id` text PRIMARY KEY NOT NULL,
	`certificate` text NOT NULL,
	`key_sealed` text NOT NULL,
	`ends_at` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `hosts` ADD `peer_port` integer;--> statement-breakpoint
ALTER TABLE `hosts` ADD `peer_key` text;