ALTER TABLE `databases` ADD `lost_with` text;--> statement-breakpoint
-- Of those that were lost before: the host of their last job.
UPDATE `databases` SET `lost_with` = (SELECT h.`token_hash` FROM `jobs` j JOIN `hosts` h ON h.`id` = j.`host_id`
  WHERE j.`database_id` = `databases`.`id` AND j.`kind` <> 'database.verify' AND h.`status` = 'REMOVED' ORDER BY j.`seq` DESC LIMIT 1)
WHERE `host_id` IS NULL AND `status` IN ('FAILED', 'SUSPENDED');
