ALTER TABLE `idempotent_requests` ADD `account_id` text;--> statement-breakpoint
ALTER TABLE `idempotent_requests` ADD `large_bytes` integer;--> statement-breakpoint
CREATE INDEX `idempotent_requests_large` ON `idempotent_requests` (`account_id`,`large_bytes`) WHERE large_bytes IS NOT NULL;