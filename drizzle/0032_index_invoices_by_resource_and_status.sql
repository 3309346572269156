DROP INDEX `invoices_resource`;--> statement-breakpoint
CREATE INDEX `invoices_resource` ON `invoices` (`resource_id`,`status`);