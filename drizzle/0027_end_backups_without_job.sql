-- The suspension of a site cancelled the jobs of its volumes' backups, and left these running for ever.
UPDATE `backups` SET `status` = 'FAILED', `error` = 'The site was suspended.', `finished_at` = unixepoch() * 1000
WHERE `status` = 'RUNNING' AND NOT EXISTS (SELECT 1 FROM `jobs` WHERE `backup_id` = `backups`.`id` AND `jobs`.`status` IN ('QUEUED', 'LEASED'));
