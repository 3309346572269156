-- What accounts with a channel for it want to know, written in the batch of its cause and once per occasion.
CREATE TRIGGER `notices_deployments` AFTER UPDATE OF status ON `deployments`
WHEN NEW.status = 'FAILED' AND OLD.status <> 'FAILED' AND NEW."trigger" <> 'move'
  AND EXISTS (SELECT 1 FROM notification_channels c, json_each(c.kinds) k
    WHERE c.account_id = NEW.account_id AND c.enabled AND k.value = 'deploy_failed') BEGIN
  INSERT INTO notices (account_id, kind, occasion, resource_id, created_at)
  VALUES (NEW.account_id, 'deploy_failed', 'deploy_failed:' || NEW.id, NEW.id, CAST(unixepoch('subsec') * 1000 AS INTEGER))
  ON CONFLICT DO NOTHING;
END;--> statement-breakpoint
-- At most one an hour for each resource, however often it is started again.
CREATE TRIGGER `notices_activity` AFTER INSERT ON `activity`
WHEN NEW.operation IN ('reportSiteCrash', 'reportDatabaseCrash')
  AND EXISTS (SELECT 1 FROM notification_channels c, json_each(c.kinds) k
    WHERE c.account_id = NEW.account_id AND c.enabled AND k.value = 'crash_loop') BEGIN
  INSERT INTO notices (account_id, kind, occasion, resource_id, created_at)
  VALUES (NEW.account_id, 'crash_loop', 'crash_loop:' || NEW.resource_id || ':' || (NEW.created_at / 3600000), NEW.resource_id, NEW.created_at)
  ON CONFLICT DO NOTHING;
END;--> statement-breakpoint
-- When it passes nine tenths, at most once a day.
CREATE TRIGGER `notices_databases` AFTER UPDATE OF disk_mb ON `databases`
WHEN NEW.disk_mb * 10 >= (SELECT disk_gb FROM packs WHERE id = NEW.pack_id) * 1024 * 9
  AND coalesce(OLD.disk_mb, 0) * 10 < (SELECT disk_gb FROM packs WHERE id = NEW.pack_id) * 1024 * 9
  AND EXISTS (SELECT 1 FROM notification_channels c, json_each(c.kinds) k
    WHERE c.account_id = NEW.account_id AND c.enabled AND k.value = 'limit_near') BEGIN
  INSERT INTO notices (account_id, kind, occasion, resource_id, created_at)
  VALUES (NEW.account_id, 'limit_near', 'disk:' || NEW.id || ':' || (unixepoch() / 86400), NEW.id, CAST(unixepoch('subsec') * 1000 AS INTEGER))
  ON CONFLICT DO NOTHING;
END;--> statement-breakpoint
CREATE TRIGGER `notices_domains` AFTER UPDATE OF problems ON `domains`
WHEN instr(NEW.problems, '"certificate_failed"') > 0 AND instr(OLD.problems, '"certificate_failed"') = 0
  AND EXISTS (SELECT 1 FROM sites s JOIN notification_channels c ON c.account_id = s.account_id, json_each(c.kinds) k
    WHERE s.id = NEW.site_id AND c.enabled AND k.value = 'certificate') BEGIN
  INSERT INTO notices (account_id, kind, occasion, resource_id, created_at)
  SELECT account_id, 'certificate', 'certificate:' || NEW.id || ':' || (unixepoch() / 86400), NEW.id, CAST(unixepoch('subsec') * 1000 AS INTEGER)
  FROM sites WHERE id = NEW.site_id
  ON CONFLICT DO NOTHING;
END;--> statement-breakpoint
-- Mails about money and failing backups are sent to every account; other channels receive the same text.
CREATE TRIGGER `notices_mails` AFTER INSERT ON `mails`
WHEN (NEW.id GLOB 'backups-failing:*' OR NEW.id GLOB 'issued:*' OR NEW.id GLOB 'ended:*' OR NEW.id GLOB 'suspended:*' OR NEW.id GLOB 'deletion:*')
  AND EXISTS (SELECT 1 FROM notification_channels c, json_each(c.kinds) k
    WHERE c.account_id = NEW.account_id AND c.enabled AND c.type <> 'mail'
      AND k.value = iif(NEW.id GLOB 'backups-failing:*', 'backup_failed', 'invoice_due')) BEGIN
  INSERT INTO notices (account_id, kind, occasion, resource_id, detail, created_at)
  VALUES (NEW.account_id, iif(NEW.id GLOB 'backups-failing:*', 'backup_failed', 'invoice_due'), NEW.id,
    substr(substr(NEW.id, instr(NEW.id, ':') + 1), 1, instr(substr(NEW.id, instr(NEW.id, ':') + 1) || ':', ':') - 1), NEW.id, NEW.created_at)
  ON CONFLICT DO NOTHING;
END;
