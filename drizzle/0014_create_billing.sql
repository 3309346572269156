CREATE TABLE `checkouts` (
	`id` text PRIMARY KEY NOT NULL,
	`invoice_id` text NOT NULL,
	`number` integer NOT NULL,
	`processor` text NOT NULL,
	`session_id` text,
	`url` text,
	`status` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`check_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `checkouts_number` ON `checkouts` (`invoice_id`,`number`);--> statement-breakpoint
CREATE UNIQUE INDEX `checkouts_one_open` ON `checkouts` (`invoice_id`) WHERE status IN ('opening', 'open', 'processing');--> statement-breakpoint
CREATE UNIQUE INDEX `checkouts_session` ON `checkouts` (`processor`,`session_id`);--> statement-breakpoint
CREATE INDEX `checkouts_check` ON `checkouts` (`check_at`) WHERE status IN ('opening', 'open', 'processing');--> statement-breakpoint
CREATE TABLE `credit_packages` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`credits` integer NOT NULL,
	`price_cents` integer NOT NULL,
	`currency` text DEFAULT 'usd' NOT NULL,
	`active` integer DEFAULT true NOT NULL
);
--> statement-breakpoint
CREATE TABLE `credit_purchases` (
	`invoice_id` text PRIMARY KEY NOT NULL,
	`package_id` text NOT NULL,
	`credits` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `disputes` (
	`id` text PRIMARY KEY NOT NULL,
	`payment_reference` text NOT NULL,
	`amount_cents` integer NOT NULL,
	`currency` text NOT NULL,
	`status` text NOT NULL,
	`reason` text NOT NULL,
	`told_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `ledger_accounts` (
	`id` text PRIMARY KEY NOT NULL,
	`balance` integer DEFAULT 0 NOT NULL,
	`held` integer DEFAULT 0 NOT NULL,
	CONSTRAINT "ledger_accounts_covered" CHECK(id LIKE 'system:%' OR (held >= 0 AND balance >= held)),
	CONSTRAINT "ledger_accounts_integers" CHECK(typeof(balance) = 'integer' AND typeof(held) = 'integer')
);
--> statement-breakpoint
CREATE TABLE `ledger_holds` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`amount` integer NOT NULL,
	`status` text NOT NULL,
	`mark` text,
	`created_at` integer NOT NULL,
	`expires_at` integer,
	CONSTRAINT "ledger_holds_amount" CHECK(typeof(amount) = 'integer' AND amount > 0)
);
--> statement-breakpoint
CREATE INDEX `ledger_holds_expiry` ON `ledger_holds` (`expires_at`) WHERE status = 'open';--> statement-breakpoint
CREATE TABLE `ledger_transfers` (
	`seq` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`debit_id` text NOT NULL,
	`credit_id` text NOT NULL,
	`amount` integer NOT NULL,
	`type` text NOT NULL,
	`reference` text NOT NULL,
	`created_at` integer NOT NULL,
	CONSTRAINT "ledger_transfers_amount" CHECK(typeof(amount) = 'integer' AND amount > 0),
	CONSTRAINT "ledger_transfers_ends" CHECK(debit_id <> credit_id)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `ledger_transfers_id_unique` ON `ledger_transfers` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `ledger_transfers_reference` ON `ledger_transfers` (`type`,`reference`);--> statement-breakpoint
CREATE INDEX `ledger_transfers_debit` ON `ledger_transfers` (`debit_id`,`seq`);--> statement-breakpoint
CREATE INDEX `ledger_transfers_credit` ON `ledger_transfers` (`credit_id`,`seq`);--> statement-breakpoint
CREATE TABLE `payment_flags` (
	`id` text PRIMARY KEY NOT NULL,
	`reason` text NOT NULL,
	`reference` text NOT NULL,
	`invoice_id` text,
	`amount_cents` integer,
	`currency` text,
	`created_at` integer NOT NULL,
	`resolved_at` integer,
	`resolved_by` text,
	`resolution` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `payment_flags_subject` ON `payment_flags` (`reason`,`reference`);--> statement-breakpoint
CREATE INDEX `payment_flags_invoice` ON `payment_flags` (`invoice_id`) WHERE resolved_at IS NULL;--> statement-breakpoint
CREATE TABLE `processor_events` (
	`id` text PRIMARY KEY NOT NULL,
	`type` text NOT NULL,
	`body` text NOT NULL,
	`outcome` text NOT NULL,
	`received_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `refunds` (
	`id` text PRIMARY KEY NOT NULL,
	`invoice_id` text NOT NULL,
	`payment_reference` text NOT NULL,
	`reference` text,
	`amount_cents` integer NOT NULL,
	`status` text NOT NULL,
	`hold_id` text,
	`missing_credits` integer DEFAULT 0 NOT NULL,
	`error` text,
	`mark` text,
	`created_by` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `refunds_one` ON `refunds` (`invoice_id`) WHERE status <> 'failed';--> statement-breakpoint
CREATE INDEX `refunds_pending` ON `refunds` (`id`) WHERE status = 'pending';--> statement-breakpoint
CREATE TABLE `test_sessions` (
	`id` text PRIMARY KEY NOT NULL,
	`invoice_id` text NOT NULL,
	`amount_cents` integer NOT NULL,
	`currency` text NOT NULL,
	`return_url` text NOT NULL,
	`status` text NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `packs` ADD `discounts` text DEFAULT '{}' NOT NULL;--> statement-breakpoint
-- Balances follow the transfers, by nobody's discipline but the database's own.
CREATE TRIGGER `ledger_transfers_apply` AFTER INSERT ON `ledger_transfers` BEGIN
  INSERT INTO ledger_accounts (id) VALUES (NEW.credit_id), (NEW.debit_id) ON CONFLICT (id) DO NOTHING;
  UPDATE ledger_accounts SET balance = balance + NEW.amount WHERE id = NEW.credit_id;
  UPDATE ledger_accounts SET balance = balance - NEW.amount WHERE id = NEW.debit_id;
END;--> statement-breakpoint
CREATE TRIGGER `ledger_transfers_no_update` BEFORE UPDATE ON `ledger_transfers` BEGIN
  SELECT RAISE(ABORT, 'The ledger is append-only');
END;--> statement-breakpoint
CREATE TRIGGER `ledger_transfers_no_delete` BEFORE DELETE ON `ledger_transfers` BEGIN
  SELECT RAISE(ABORT, 'The ledger is append-only');
END;--> statement-breakpoint
CREATE TRIGGER `ledger_accounts_no_delete` BEFORE DELETE ON `ledger_accounts` BEGIN
  SELECT RAISE(ABORT, 'The ledger is append-only');
END;--> statement-breakpoint
CREATE TRIGGER `ledger_holds_open` AFTER INSERT ON `ledger_holds` BEGIN
  INSERT INTO ledger_accounts (id) VALUES (NEW.account_id) ON CONFLICT (id) DO NOTHING;
  UPDATE ledger_accounts SET held = held + NEW.amount WHERE id = NEW.account_id;
END;--> statement-breakpoint
CREATE TRIGGER `ledger_holds_once` BEFORE UPDATE ON `ledger_holds`
WHEN OLD.status <> 'open' OR NEW.amount <> OLD.amount OR NEW.account_id <> OLD.account_id BEGIN
  SELECT RAISE(ABORT, 'A hold ends once');
END;--> statement-breakpoint
CREATE TRIGGER `ledger_holds_end` AFTER UPDATE ON `ledger_holds` WHEN NEW.status <> 'open' BEGIN
  UPDATE ledger_accounts SET held = held - OLD.amount WHERE id = OLD.account_id;
END;--> statement-breakpoint
CREATE TRIGGER `ledger_holds_no_delete` BEFORE DELETE ON `ledger_holds` BEGIN
  SELECT RAISE(ABORT, 'The ledger is append-only');
END;--> statement-breakpoint
CREATE TRIGGER `processor_events_no_delete` BEFORE DELETE ON `processor_events` BEGIN
  SELECT RAISE(ABORT, 'Event ids are kept for ever');
END;--> statement-breakpoint
CREATE TRIGGER `payments_no_delete` BEFORE DELETE ON `payments` BEGIN
  SELECT RAISE(ABORT, 'Payments are kept for ever');
END;--> statement-breakpoint
-- The credit packages a new installation offers; the operator changes them at will.
INSERT INTO credit_packages (id, name, credits, price_cents, currency, active) VALUES
  ('cpk_001k0000000000000000000001', 'Small', 500, 500, 'usd', 1),
  ('cpk_001k0000000000000000000002', 'Medium', 2200, 2000, 'usd', 1),
  ('cpk_001k0000000000000000000003', 'Large', 6000, 5000, 'usd', 1);
