ALTER TABLE `deployments` ADD `image_id` text;--> statement-breakpoint
ALTER TABLE `deployments` ADD `build_key` text;--> statement-breakpoint
ALTER TABLE `deployments` ADD `run` text;--> statement-breakpoint
ALTER TABLE `deployments` ADD `rollback_of` text;--> statement-breakpoint
ALTER TABLE `deployments` ADD `rebuild` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `jobs` ADD `env_version` integer;--> statement-breakpoint
ALTER TABLE `sites` ADD `registry_username` text;--> statement-breakpoint
ALTER TABLE `sites` ADD `registry_password_sealed` text;