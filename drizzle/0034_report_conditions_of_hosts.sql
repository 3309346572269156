ALTER TABLE `hosts` ADD `disk_needed_mb` integer;--> statement-breakpoint
ALTER TABLE `hosts` ADD `ingress_problem` text;