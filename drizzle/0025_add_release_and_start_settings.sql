ALTER TABLE `sites` ADD `release_command` text;--> statement-breakpoint
ALTER TABLE `sites` ADD `start_timeout_seconds` integer;