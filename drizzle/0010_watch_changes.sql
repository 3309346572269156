-- The changes of followed accounts, for GET /events: whatever writes a status, nothing can forget to tell it.
CREATE TRIGGER `changes_sites_insert` AFTER INSERT ON `sites`
WHEN EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES (NEW.account_id, 'site', NEW.id, json_object('status', NEW.status), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_sites_update` AFTER UPDATE OF status, serving, current_deployment_id, name, pack_id, next_pack_id, paid_until, host_id, replicas ON `sites`
WHEN (NEW.status IS NOT OLD.status OR NEW.serving IS NOT OLD.serving OR NEW.current_deployment_id IS NOT OLD.current_deployment_id OR NEW.name IS NOT OLD.name OR NEW.pack_id IS NOT OLD.pack_id OR NEW.next_pack_id IS NOT OLD.next_pack_id OR NEW.paid_until IS NOT OLD.paid_until OR NEW.host_id IS NOT OLD.host_id OR NEW.replicas IS NOT OLD.replicas)
  AND EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES (NEW.account_id, 'site', NEW.id, json_object('status', NEW.status), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_sites_delete` AFTER DELETE ON `sites`
WHEN EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = OLD.account_id) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES (OLD.account_id, 'site', OLD.id, json_object('deleted', json('true')), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_deployments_insert` AFTER INSERT ON `deployments`
WHEN EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES (NEW.account_id, 'deployment', NEW.id, json_object('status', NEW.status, 'siteId', NEW.site_id, 'number', NEW.number), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_deployments_update` AFTER UPDATE OF status, error, commit_sha ON `deployments`
WHEN (NEW.status IS NOT OLD.status OR NEW.error IS NOT OLD.error OR NEW.commit_sha IS NOT OLD.commit_sha)
  AND EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES (NEW.account_id, 'deployment', NEW.id, json_object('status', NEW.status, 'siteId', NEW.site_id, 'number', NEW.number), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_databases_insert` AFTER INSERT ON `databases`
WHEN EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES (NEW.account_id, 'database', NEW.id, json_object('status', NEW.status), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_databases_update` AFTER UPDATE OF status, error, version, pack_id, next_pack_id, paid_until, host_id, public_enabled, public_applied, public_error, generation, previous_password_sealed, backups_failing_since ON `databases`
WHEN (NEW.status IS NOT OLD.status OR NEW.error IS NOT OLD.error OR NEW.version IS NOT OLD.version OR NEW.pack_id IS NOT OLD.pack_id OR NEW.next_pack_id IS NOT OLD.next_pack_id OR NEW.paid_until IS NOT OLD.paid_until OR NEW.host_id IS NOT OLD.host_id OR NEW.public_enabled IS NOT OLD.public_enabled OR NEW.public_applied IS NOT OLD.public_applied OR NEW.public_error IS NOT OLD.public_error OR NEW.generation IS NOT OLD.generation OR NEW.previous_password_sealed IS NOT OLD.previous_password_sealed OR NEW.backups_failing_since IS NOT OLD.backups_failing_since)
  AND EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES (NEW.account_id, 'database', NEW.id, json_object('status', NEW.status), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_databases_delete` AFTER DELETE ON `databases`
WHEN EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = OLD.account_id) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES (OLD.account_id, 'database', OLD.id, json_object('deleted', json('true')), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_backups_insert` AFTER INSERT ON `backups`
WHEN EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES (NEW.account_id, 'backup', NEW.id, json_object('status', NEW.status, 'databaseId', NEW.database_id), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_backups_update` AFTER UPDATE OF status, removed_at, error, verified_at ON `backups`
WHEN (NEW.status IS NOT OLD.status OR NEW.removed_at IS NOT OLD.removed_at OR NEW.error IS NOT OLD.error OR NEW.verified_at IS NOT OLD.verified_at)
  AND EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES (NEW.account_id, 'backup', NEW.id, json_object('status', NEW.status, 'databaseId', NEW.database_id), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_backups_delete` AFTER DELETE ON `backups`
WHEN EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = OLD.account_id) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES (OLD.account_id, 'backup', OLD.id, json_object('databaseId', OLD.database_id, 'deleted', json('true')), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_commands_insert` AFTER INSERT ON `commands`
WHEN EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES (NEW.account_id, 'command', NEW.id, json_object('status', NEW.status, 'siteId', NEW.site_id), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_commands_update` AFTER UPDATE OF status ON `commands`
WHEN (NEW.status IS NOT OLD.status)
  AND EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES (NEW.account_id, 'command', NEW.id, json_object('status', NEW.status, 'siteId', NEW.site_id), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_invoices_insert` AFTER INSERT ON `invoices`
WHEN EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES (NEW.account_id, 'invoice', NEW.id, json_object('status', NEW.status, 'resourceId', NEW.resource_id), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_invoices_update` AFTER UPDATE OF status ON `invoices`
WHEN (NEW.status IS NOT OLD.status)
  AND EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES (NEW.account_id, 'invoice', NEW.id, json_object('status', NEW.status, 'resourceId', NEW.resource_id), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_domains_insert` AFTER INSERT ON `domains`
WHEN EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = (SELECT account_id FROM sites WHERE id = NEW.site_id)) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES ((SELECT account_id FROM sites WHERE id = NEW.site_id), 'domain', NEW.id, json_object('status', CASE WHEN NEW.verified_at IS NULL THEN 'PENDING_VERIFICATION' ELSE NEW.state END, 'siteId', NEW.site_id, 'name', NEW.name), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_domains_update` AFTER UPDATE OF verified_at, state, problems, certificate, redirect_to ON `domains`
WHEN (NEW.verified_at IS NOT OLD.verified_at OR NEW.state IS NOT OLD.state OR NEW.problems IS NOT OLD.problems OR NEW.certificate IS NOT OLD.certificate OR NEW.redirect_to IS NOT OLD.redirect_to)
  AND EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = (SELECT account_id FROM sites WHERE id = NEW.site_id)) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES ((SELECT account_id FROM sites WHERE id = NEW.site_id), 'domain', NEW.id, json_object('status', CASE WHEN NEW.verified_at IS NULL THEN 'PENDING_VERIFICATION' ELSE NEW.state END, 'siteId', NEW.site_id, 'name', NEW.name), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_domains_delete` AFTER DELETE ON `domains`
WHEN EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = (SELECT account_id FROM sites WHERE id = OLD.site_id)) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES ((SELECT account_id FROM sites WHERE id = OLD.site_id), 'domain', OLD.id, json_object('siteId', OLD.site_id, 'name', OLD.name, 'deleted', json('true')), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_activity_insert` AFTER INSERT ON `activity`
WHEN EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES (NEW.account_id, 'activity', NEW.id, json_object('operation', NEW.operation, 'resourceId', NEW.resource_id, 'actor', NEW.actor, 'outcome', NEW.outcome), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_ledger_accounts_update` AFTER UPDATE OF balance ON `ledger_accounts`
WHEN NEW.balance <> OLD.balance
  AND EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = NEW.id) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES (NEW.id, 'credits', NEW.id, json_object('balance', NEW.balance), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;--> statement-breakpoint
CREATE TRIGGER `changes_accounts_update` AFTER UPDATE OF name, email, email_verified, plan, role ON `accounts`
WHEN (NEW.name <> OLD.name OR NEW.email <> OLD.email OR NEW.email_verified <> OLD.email_verified OR NEW.plan <> OLD.plan OR NEW.role <> OLD.role)
  AND EXISTS (SELECT 1 FROM followed_accounts WHERE account_id = NEW.id) BEGIN
  INSERT INTO changes (account_id, type, resource_id, fields, created_at)
  VALUES (NEW.id, 'account', NEW.id, json_object(), CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;
