-- PostgreSQL refuses logins of such a name, so these were never provisioned: nothing is in them, and nobody has an address of theirs.
UPDATE `databases` SET `database_name` = 'db_' || `database_name`
WHERE `type` = 'postgresql' AND `version` IS NULL AND `database_name` LIKE 'pg\_%' ESCAPE '\';
