CREATE INDEX `schedules_account` ON `schedules` (`account_id`);--> statement-breakpoint
CREATE INDEX `schedules_unset` ON `schedules` (`site_id`) WHERE enabled AND next_run_at IS NULL;