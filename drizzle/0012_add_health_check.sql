ALTER TABLE `sites` ADD `health_check` text DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE `sites` ADD `kept_images` integer DEFAULT 5 NOT NULL;