ALTER TABLE `hosts` ADD `memory_limit_mb` integer;--> statement-breakpoint
ALTER TABLE `hosts` ADD `memory_known_mb` integer;