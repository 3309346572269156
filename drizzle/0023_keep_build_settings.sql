ALTER TABLE `deployments` ADD `build` text;--> statement-breakpoint
CREATE INDEX `jobs_evicted` ON `jobs` (`site_id`,`seq`) WHERE kind = 'site.evict';