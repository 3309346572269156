CREATE TABLE `mails` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`subject` text NOT NULL,
	`text` text NOT NULL,
	`created_at` integer NOT NULL,
	`try_at` integer NOT NULL,
	`sent_at` integer
);
--> statement-breakpoint
CREATE INDEX `mails_try` ON `mails` (`sent_at`,`try_at`);--> statement-breakpoint
CREATE INDEX `mails_created` ON `mails` (`created_at`);--> statement-breakpoint
ALTER TABLE `databases` ADD `suspended_at` integer;--> statement-breakpoint
ALTER TABLE `databases` ADD `next_pack_id` text;--> statement-breakpoint
ALTER TABLE `databases` ADD `next_pack_at` integer;--> statement-breakpoint
ALTER TABLE `databases` ADD `next_billing_term` integer;--> statement-breakpoint
ALTER TABLE `databases` ADD `pack_changed_at` integer;--> statement-breakpoint
CREATE INDEX `databases_term` ON `databases` (`paid_until`);--> statement-breakpoint
CREATE INDEX `databases_next_pack` ON `databases` (`next_pack_at`) WHERE next_pack_at IS NOT NULL;--> statement-breakpoint
ALTER TABLE `invoices` ADD `pack_id` text;--> statement-breakpoint
ALTER TABLE `invoices` ADD `period_end` integer;--> statement-breakpoint
CREATE UNIQUE INDEX `invoices_renewal` ON `invoices` (`resource_id`,`period_end`) WHERE kind = 'renewal' AND status IN ('unpaid', 'paid');--> statement-breakpoint
CREATE UNIQUE INDEX `invoices_one_to_pay` ON `invoices` (`resource_id`) WHERE kind IN ('renewal', 'change') AND status = 'unpaid';--> statement-breakpoint
ALTER TABLE `sites` ADD `suspended_at` integer;--> statement-breakpoint
ALTER TABLE `sites` ADD `next_pack_id` text;--> statement-breakpoint
ALTER TABLE `sites` ADD `next_pack_at` integer;--> statement-breakpoint
ALTER TABLE `sites` ADD `next_billing_term` integer;--> statement-breakpoint
ALTER TABLE `sites` ADD `pack_changed_at` integer;--> statement-breakpoint
CREATE INDEX `sites_term` ON `sites` (`paid_until`);--> statement-breakpoint
CREATE INDEX `sites_next_pack` ON `sites` (`next_pack_at`) WHERE next_pack_at IS NOT NULL;