CREATE TABLE `acme_accounts` (
	`id` text PRIMARY KEY NOT NULL,
	`key_sealed` text NOT NULL,
	`url` text
);
--> statement-breakpoint
CREATE TABLE `certificates` (
	`id` text PRIMARY KEY NOT NULL,
	`chain` text,
	`key_sealed` text,
	`issuer` text,
	`not_before` integer,
	`not_after` integer,
	`told_at` integer,
	`busy_until` integer NOT NULL,
	`next_at` integer NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL,
	`error` text,
	`error_since` integer,
	`step` text,
	`ordered_at` integer,
	`order_url` text,
	`challenge_url` text,
	`challenge_value` text,
	`published_at` integer,
	`order_key_sealed` text
);
