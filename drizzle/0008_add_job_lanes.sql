DROP INDEX `jobs_one_leased`;--> statement-breakpoint
ALTER TABLE `jobs` ADD `lane` text NOT NULL DEFAULT '';--> statement-breakpoint
UPDATE `jobs` SET `lane` = `site_id`;--> statement-breakpoint
CREATE INDEX `jobs_lane` ON `jobs` (`lane`,`seq`);--> statement-breakpoint
CREATE UNIQUE INDEX `jobs_one_leased` ON `jobs` (`lane`) WHERE status = 'LEASED';