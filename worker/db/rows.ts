import type { backups, databases, deployments, invoices, jobs, packs, sites } from "./schema.ts";

export type BackupRow = typeof backups.$inferSelect;
export type DatabaseRow = typeof databases.$inferSelect;
export type DeploymentRow = typeof deployments.$inferSelect;
export type InvoiceRow = typeof invoices.$inferSelect;
export type JobRow = typeof jobs.$inferSelect;
export type PackRow = typeof packs.$inferSelect;
export type SiteRow = typeof sites.$inferSelect;
