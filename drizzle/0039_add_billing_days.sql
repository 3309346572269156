ALTER TABLE `databases` ADD `billing_day` integer;--> statement-breakpoint
ALTER TABLE `sites` ADD `billing_day` integer;