ALTER TABLE `invoices` ADD `number` integer;--> statement-breakpoint
CREATE UNIQUE INDEX `invoices_number_unique` ON `invoices` (`number`);