CREATE TABLE `deliveries` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`channel_id` text NOT NULL,
	`kind` text NOT NULL,
	`occasion` text NOT NULL,
	`resource_id` text,
	`subject` text NOT NULL,
	`text` text NOT NULL,
	`link` text,
	`status` text NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`try_at` integer,
	`http_status` integer,
	`error` text,
	`created_at` integer NOT NULL,
	`finished_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `deliveries_occasion` ON `deliveries` (`channel_id`,`occasion`);--> statement-breakpoint
CREATE INDEX `deliveries_account` ON `deliveries` (`account_id`,`id`);--> statement-breakpoint
CREATE INDEX `deliveries_due` ON `deliveries` (`try_at`) WHERE status = 'pending';--> statement-breakpoint
CREATE TABLE `notices` (
	`seq` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`account_id` text NOT NULL,
	`kind` text NOT NULL,
	`occasion` text NOT NULL,
	`resource_id` text NOT NULL,
	`detail` text,
	`created_at` integer NOT NULL,
	`taken_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `notices_occasion` ON `notices` (`account_id`,`occasion`);--> statement-breakpoint
CREATE INDEX `notices_waiting` ON `notices` (`seq`) WHERE taken_at IS NULL;--> statement-breakpoint
CREATE TABLE `notification_channels` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`type` text NOT NULL,
	`name` text NOT NULL,
	`url_sealed` text,
	`secret_sealed` text,
	`kinds` text NOT NULL,
	`enabled` integer DEFAULT true NOT NULL,
	`disabled_reason` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `notification_channels_account` ON `notification_channels` (`account_id`,`id`);