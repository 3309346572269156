ALTER TABLE `site_env_versions` ADD `actor` text;--> statement-breakpoint
ALTER TABLE `site_env_versions` ADD `actor_id` text;--> statement-breakpoint
ALTER TABLE `site_env_versions` ADD `restored_from` integer;