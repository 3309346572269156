ALTER TABLE `accounts` ADD `note` text;--> statement-breakpoint
ALTER TABLE `deployments` ADD `key_id` text;--> statement-breakpoint
ALTER TABLE `installation_settings` ADD `sign_up` text;