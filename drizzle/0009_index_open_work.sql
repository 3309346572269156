DROP INDEX `jobs_open`;--> statement-breakpoint
DROP INDEX `jobs_deadline`;--> statement-breakpoint
DROP INDEX `jobs_lane`;--> statement-breakpoint
DROP INDEX `jobs_site`;--> statement-breakpoint
CREATE INDEX `jobs_host` ON `jobs` (`status`,`host_id`,`seq`);--> statement-breakpoint
CREATE INDEX `jobs_deployment` ON `jobs` (`deployment_id`,`seq`);--> statement-breakpoint
CREATE INDEX `jobs_deadline` ON `jobs` (`status`,`deadline_at`);--> statement-breakpoint
CREATE INDEX `jobs_lane` ON `jobs` (`lane`,`status`,`seq`);--> statement-breakpoint
CREATE INDEX `jobs_site` ON `jobs` (`site_id`,`status`);--> statement-breakpoint
CREATE INDEX `deployments_status` ON `deployments` (`site_id`,`status`);--> statement-breakpoint
CREATE INDEX `deployments_kept` ON `deployments` (`site_id`,`number`) WHERE status IN ('LIVE', 'SUPERSEDED', 'BUILDING', 'STARTING');--> statement-breakpoint
CREATE INDEX `sites_status` ON `sites` (`status`);