CREATE TABLE `idempotent_requests` (
	`id` text PRIMARY KEY NOT NULL,
	`body_hash` text NOT NULL,
	`status` integer,
	`response_sealed` text,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `idempotent_requests_created` ON `idempotent_requests` (`created_at`);