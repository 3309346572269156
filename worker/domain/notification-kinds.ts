import type { NotificationKind } from "../../protocol/states.ts";

export const nameOfKind: Record<NotificationKind | "test", string> = {
  deploy_failed: "failed deployments",
  crash_loop: "apps and databases that keep exiting",
  unhealthy: "failing health checks",
  limit_near: "disk or memory running out",
  backup_failed: "failing backups",
  invoice_due: "invoices and terms",
  certificate: "certificates that cannot be issued",
  test: "a test",
};
