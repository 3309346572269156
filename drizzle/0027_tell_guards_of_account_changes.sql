ALTER TABLE `api_keys` ADD `untold_change` text;--> statement-breakpoint
CREATE INDEX `api_keys_untold_change` ON `api_keys` (`untold_change`) WHERE untold_change IS NOT NULL;