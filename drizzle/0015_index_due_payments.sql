DROP INDEX `refunds_pending`;--> statement-breakpoint
CREATE INDEX `refunds_status` ON `refunds` (`status`);--> statement-breakpoint
DROP INDEX `checkouts_check`;--> statement-breakpoint
CREATE INDEX `checkouts_check` ON `checkouts` (`status`,`check_at`);--> statement-breakpoint
DROP INDEX `ledger_holds_expiry`;--> statement-breakpoint
CREATE INDEX `ledger_holds_expiry` ON `ledger_holds` (`status`,`expires_at`);--> statement-breakpoint
CREATE INDEX `invoices_due` ON `invoices` (`status`,`due_at`);